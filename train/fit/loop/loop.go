// Package loop runs the steps of a fit.Trainer: losses and metrics, checkpoints, evaluation and early
// stop, and the ranks that go on when one is lost.
//
//	world, err = r.Keep(ctx, world, size, func(ctx context.Context, world *ccl.Comm) error {
//		t, err := fit.New(...)
//		return r.Train(ctx, t)
//	})
package loop

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/amp"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/mirror"
	"github.com/goccl/goccl/train/resume"
	"github.com/goccl/goccl/xla"
)

// Options of a run are the same on all ranks, but for Out and Stop.
type Options struct {
	// Steps is the last step.
	Steps int
	// Rate is the learning rate of a step, from 1 on.
	Rate func(step int) float64
	// Batches are this rank's micro batches of a step.
	Batches func(step int) ([]fit.Batch, error)
	// Tokens is how many tokens all ranks take in a step, and Flops what one costs, forward and backward, for the metrics.
	Tokens int
	Flops  float64

	// Log is after how many steps losses are read and a line is said; nothing waits for the device between. 0 means 1.
	Log int
	// Wait reads the loss of every step.
	Wait bool
	// Pace, if not nil, has a line read from it before the first step of those that a line is about.
	Pace *bufio.Reader
	// Out gets the lines of rank 0; nil: nowhere.
	Out io.Writer
	// JSON and SVG are files for metrics and a picture of the loss; "": none. A run that goes on, as with Resume,
	// appends to JSON, and history.Read has of a step the last line.
	JSON, SVG string
	// Stop ends the run after the steps of a line, if it has something.
	Stop <-chan os.Signal

	// Save is the directory of checkpoints; one is written at the end, every Every steps (a multiple of Log), and Keep of
	// them are kept. "": none are.
	Save        string
	Every, Keep int
	// Resume goes on from the last checkpoint, whatever its layout. Without it the directory must
	// have none.
	Resume bool
	// Recover goes on with the ranks that are left when some are lost.
	Recover bool
	// Mirror keeps each rank's state in the memory of another, too, every so many steps: what spares go on from. 0: not.
	// The scale of a loss is not part of that: it begins anew.
	Mirror int
	// Begin begins a run that resumes nothing, as by loading weights. nil: the initial values. Where some parameters
	// are frozen (LoRA), it is called before a run is resumed, too: no checkpoint has those.
	Begin func(ctx context.Context, t *fit.Trainer) error
	// End is called behind the last step, as to write the model. nil: nothing is.
	End func(ctx context.Context, t *fit.Trainer) error
	// State is kept in checkpoints; Check says whether one fits this run.
	State func() any
	Check func(dir string, state json.RawMessage) error

	// Held are held-out batches, scored every EvalEvery steps (a multiple of Log) and at the end;
	// 0: not. With Average the moving average is scored.
	Held      []fit.Batch
	EvalEvery int
	Average   bool
	// Best is a directory for the checkpoint of the best score; Patience ends the run after so many scores that
	// are no better; 0: never.
	Best     string
	Patience int
}

// A Run is one rank's run. Its fields are for those who ask afterwards.
type Run struct {
	O Options
	// Losses are those of all steps so far, of all ranks; Said is the step of the last line.
	Losses []float64
	Said   int
	// Scores are those of Held; BestScore the lowest loss among them, at BestStep.
	Scores    []fit.Score
	BestScore float64
	BestStep  int

	again  bool // a rank was lost
	scored bool // there is a best
	bad    int  // scores since the best
	mirror *mirror.Mirror
}

// progress is what a checkpoint keeps beside tensors.
type progress struct {
	Step  int
	Best  best
	Scale *amp.State `json:",omitempty"`
	Of    json.RawMessage
}

// best is what early stopping knows.
type best struct {
	Loss   float64
	Step   int
	Bad    int
	Scored bool
}

// Train runs the steps of a trainer, from the last one that was kept.
func (r *Run) Train(ctx context.Context, t *fit.Trainer) (err error) {
	o, world := &r.O, t.Machine().World()
	if o.Log = max(o.Log, 1); o.Out == nil || world.Rank() > 0 {
		o.Out = io.Discard
	}
	if o.Every%o.Log != 0 || o.EvalEvery%o.Log != 0 {
		return fmt.Errorf("loop: checkpoints every %d steps, scores every %d: both must be multiples of the %d steps of a line", o.Every, o.EvalEvery, o.Log)
	}
	s := &steps{r: r, t: t, world: world}
	goesOn := r.again || o.Resume || len(world.Fresh()) > 0
	defer func() {
		for _, p := range s.pending {
			err = errors.Join(err, xla.FreeAll(p...))
		}
	}()
	if err := s.start(ctx); err != nil {
		return err
	}
	if s.saver != nil {
		defer func() { err = errors.Join(err, s.saver.Close(ctx)) }()
	}
	h, closed, err := r.history(ctx, world, goesOn) // now that the run is not refused: it empties a file
	if err != nil {
		return err
	}
	defer func() { err = closed(err) }()
	s.h = h
	if o.EvalEvery > 0 && s.last == 0 { // how it begins
		if _, err := s.score(ctx, 0); err != nil {
			return err
		}
	}
	if err := s.run(ctx); err != nil {
		return err
	}
	if o.End != nil {
		if err := o.End(ctx, t); err != nil {
			return err
		}
	}
	if memory, err := t.Machine().Client().Memory(); err == nil && memory.Peak > 0 {
		fmt.Fprintf(o.Out, "at most %.2f GiB on the device\n", float64(memory.Peak)/(1<<30))
	}
	if o.SVG != "" && world.Rank() == 0 {
		f, err := files.Create(o.SVG)
		if err != nil {
			return err
		}
		return errors.Join(h.SVG(f, "loss"), f.Close())
	}
	return nil
}

// history makes the metrics, and what closes their file: it adds to the run's error whether all was written. In a run
// that goes on the lines of steps that are done once more replace those before.
func (r *Run) history(ctx context.Context, world *ccl.Comm, goesOn bool) (h *history.History,
	closed func(error) error, err error) {
	o, closed := &history.Options{}, func(err error) error { return err }
	if r.O.JSON != "" && world.Rank() == 0 {
		open := files.Create
		if goesOn {
			open = files.Append
		}
		f, err := open(r.O.JSON)
		if err != nil {
			world.Abort(err)
			return nil, closed, err
		}
		o.JSON = f
		closed = func(err error) error {
			if err == nil { // the last step's, which no Log tells
				err = h.Err()
			}
			return errors.Join(err, f.Close())
		}
	}
	if h, err = history.New(ctx, world, o); err != nil {
		return nil, closed, closed(err)
	}
	return h, closed, nil
}

// steps are those of one trainer.
type steps struct {
	r       *Run
	t       *fit.Trainer
	world   *ccl.Comm
	h       *history.History
	saver   *resume.Saver
	pending []fit.Loss
	last    int // the last step that was done
}

// alone returns err, which may have happened on this rank alone, and aborts the Comm with it.
func (s *steps) alone(err error) error {
	if err != nil {
		s.world.Abort(err)
	}
	return err
}

func (s *steps) run(ctx context.Context) error {
	o := &s.r.O
	first := s.last + 1
	stopped, began, from := []uint8{0}, time.Now(), first // from: the first step since began
	for step := first; step <= o.Steps && stopped[0] == 0; step++ {
		if o.Pace != nil && (step-1)%o.Log == 0 {
			if _, err := o.Pace.ReadString('\n'); err != nil {
				return fmt.Errorf("pace: %w", err)
			}
			began, from = time.Now(), step
		}
		batches, err := o.Batches(step)
		if err != nil {
			return s.alone(fmt.Errorf("step %d: %w", step, err))
		}
		loss, err := s.t.Step(ctx, step, o.Rate(step), batches)
		if err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		s.pending = append(s.pending, loss)
		say := step == first || step%o.Log == 0 || step == o.Steps
		if !say && !o.Wait && o.Mirror == 0 {
			continue
		}
		if err := s.read(ctx, step); err != nil {
			return err
		}
		if err := s.mirrored(ctx, step); err != nil {
			return err
		}
		if !say {
			continue
		}
		if err := s.log(ctx, step, time.Since(began)/time.Duration(step-from+1)); err != nil {
			return err
		}
		s.r.Said, s.last = step, step
		select {
		case <-o.Stop:
			stopped[0] = 1
		default:
		}
		if o.EvalEvery > 0 && (step%o.EvalEvery == 0 || step == o.Steps) {
			enough, err := s.score(ctx, step)
			if err != nil {
				return err
			}
			if enough {
				fmt.Fprintf(o.Out, "no better than step %d for %d scores: ending after step %d\n", s.r.BestStep, s.r.bad, step)
				break
			}
		}
		if err := ccl.AllReduce(ctx, s.world, stopped, stopped, ccl.Max); err != nil {
			return err
		}
		if s.saver != nil && o.Every > 0 && step%o.Every == 0 {
			if err := s.keep(ctx, step); err != nil {
				return err
			}
		}
		began, from = time.Now(), step+1
	}
	if stopped[0] == 1 {
		fmt.Fprintf(o.Out, "interrupted after step %d\n", s.last)
	}
	if s.saver != nil && s.last >= first {
		if err := errors.Join(s.keep(ctx, s.last), s.saver.Finish(ctx)); err != nil {
			return err
		}
		fmt.Fprintf(o.Out, "saved step %d in %s\n", s.last, o.Save)
	}
	return nil
}

// read waits for losses, and makes them those of all ranks.
func (s *steps) read(ctx context.Context, step int) error {
	list, err := s.t.Read(ctx, s.pending...)
	if s.pending = s.pending[:0]; err != nil {
		return err
	}
	s.r.Losses = append(s.r.Losses, list...)
	for i, x := range list {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("step %d: the loss is %v: lower the learning rate, or clip gradients", step-len(list)+1+i, x)
		}
	}
	return nil
}

// peaks are what devices multiply in bfloat16, in FLOP/s, without sparsity, by their names' beginnings.
var peaks = []struct {
	name  string
	flops float64
}{{"NVIDIA H100 PCIe", 756e12}, {"NVIDIA H100", 989e12}, {"NVIDIA H200", 989e12}, {"NVIDIA A100", 312e12}}

// log says how the last steps went, each of which took dt.
func (s *steps) log(ctx context.Context, step int, took time.Duration) error {
	dt := took.Seconds()
	tps := float64(s.r.O.Tokens) / dt
	metrics := []history.Metric{{Name: "loss", Value: s.r.Losses[len(s.r.Losses)-1]}, {Name: "dt", Value: dt},
		{Name: "tps", Value: tps}}
	line := fmt.Sprintf("step=%d loss=%.5f dt=%.5f tps=%.0f", step, metrics[0].Value, dt, tps)
	for _, p := range peaks {
		if s.r.O.Flops > 0 && s.t.Machine().Client().Named(p.name) {
			mfu := history.MFU(tps, s.r.O.Flops, p.flops*float64(s.world.Size()))
			metrics = append(metrics, history.Metric{Name: "mfu", Value: mfu})
			line += fmt.Sprintf(" mfu=%.1f", mfu)
			break
		}
	}
	fmt.Fprintln(s.r.O.Out, line)
	return s.h.Log(ctx, step, metrics...)
}

// score scores the held-out batches, keeps the best, and reports whether that is enough.
func (s *steps) score(ctx context.Context, step int) (enough bool, err error) {
	r, o := s.r, &s.r.O
	if o.Average {
		if err := s.t.Swap(ctx); err != nil {
			return false, err
		}
		defer func() {
			if err == nil {
				err = s.t.Swap(ctx)
			}
		}()
	}
	x, err := s.t.Eval(ctx, o.Held)
	if err != nil {
		return false, err
	}
	r.Scores = append(r.Scores, x)
	fmt.Fprintf(o.Out, "step=%d held-out loss=%.5f perplexity=%.3f accuracy=%.4f\n", step, x.Loss, x.Perplexity, x.Accuracy)
	err = s.h.Log(ctx, step, history.Metric{Name: "held_loss", Value: x.Loss},
		history.Metric{Name: "held_accuracy", Value: x.Accuracy})
	if err != nil {
		return false, err
	}
	if !(x.Loss < math.Inf(1)) || r.scored && x.Loss >= r.BestScore {
		r.bad++
		return o.Patience > 0 && r.bad >= o.Patience, nil
	}
	r.BestScore, r.BestStep, r.bad, r.scored = x.Loss, step, 0, true
	if o.Best == "" {
		return false, nil
	}
	list, err := s.t.Tensors(ctx, true)
	if err != nil {
		return false, s.alone(err)
	}
	state, err := s.state(step)
	if err != nil {
		return false, s.alone(err)
	}
	dir := ckpt.Step(o.Best, step)
	aside := dir + ".before"
	// A run that goes on from an earlier step comes to this one again: what it had then stays until there is another.
	if _, err := os.Lstat(dir); err == nil && s.world.Rank() == 0 {
		if err := errors.Join(os.RemoveAll(aside), os.Rename(dir, aside)); err != nil {
			return false, s.alone(err)
		}
	}
	if err := ckpt.Save(ctx, s.world, dir, state, list); err != nil {
		return false, err
	}
	if s.world.Rank() == 0 {
		if err := os.RemoveAll(aside); err != nil {
			return false, s.alone(err)
		}
	}
	return false, ckpt.Keep(ctx, s.world, o.Best, 1)
}

// state is what a checkpoint has beside tensors.
func (s *steps) state(step int) (p progress, err error) {
	p = progress{Step: step, Best: best{s.r.BestScore, s.r.BestStep, s.r.bad, s.r.scored}}
	if x := s.t.Scaler(); x != nil {
		state := x.State()
		p.Scale = &state
	}
	if s.r.O.State != nil {
		p.Of, err = json.Marshal(s.r.O.State())
	}
	return p, err
}

// keep begins the checkpoint of a step.
func (s *steps) keep(ctx context.Context, step int) error {
	return s.saver.Begin(ctx, step, func() (any, []ckpt.Tensor, error) {
		list, err := s.t.Tensors(ctx, true)
		if err != nil {
			return nil, nil, s.alone(err)
		}
		state, err := s.state(step)
		return state, list, err
	})
}
