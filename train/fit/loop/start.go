package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/mirror"
	"github.com/goccl/goccl/train/resume"
	"github.com/goccl/goccl/xla/nn"
)

// errNoCheckpoint says that there was never a whole one.
var errNoCheckpoint = errors.New("nothing to resume from")

// start makes the saver, and goes on from a mirrored state or a checkpoint, or begins.
func (s *steps) start(ctx context.Context) (err error) {
	r, o := s.r, &s.r.O
	for _, dir := range []string{o.Save, o.Best} {
		if dir != "" && s.world.Rank() == 0 {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return s.alone(err)
			}
		}
	}
	if o.Save != "" {
		if s.saver, err = resume.NewSaver(ctx, s.world, o.Save, o.Keep); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, s.saver.Close(ctx))
			}
		}()
	}
	fresh := o.Mirror > 0 && len(s.world.Fresh()) > 0
	if o.Save != "" && !o.Resume && !fresh { // what a lost rank would go on from must be of this run, and no name be taken
		switch dir, _, failed := ckpt.Latest(ctx, s.world, o.Save); {
		case failed == nil:
			return fmt.Errorf("%s has %s: resume from it, or name another directory", o.Save, filepath.Base(dir))
		case !errors.Is(failed, os.ErrNotExist):
			return failed
		}
	}
	begin := o.Begin
	if begin != nil && frozen(s.t) { // which no checkpoint has, nor a mirror
		if err := begin(ctx, s.t); err != nil {
			return err
		}
		begin = nil
	}
	if o.Mirror > 0 {
		found, err := s.restored(ctx)
		if found || err != nil {
			return err
		}
		defer func() {
			if err == nil {
				s.world.Restored()
			}
		}()
	}
	resumed := false
	if o.Save != "" && (o.Resume || fresh) {
		switch err = s.resume(ctx); {
		case (r.again || fresh) && errors.Is(err,
			errNoCheckpoint): // a rank was lost before there was one: all ranks have this error
			fmt.Fprintf(o.Out, "there is no checkpoint in %s yet: beginning again\n", o.Save)
		case err != nil:
			return err
		default:
			resumed, s.saver.Saved = true, s.last
		}
	}
	if begin != nil && !resumed {
		return begin(ctx, s.t)
	}
	return nil
}

// frozen reports whether the trainer has parameters that no step updates: it trains adapters.
func frozen(t *fit.Trainer) bool {
	return slices.ContainsFunc(t.Params(), func(list []nn.Param) bool {
		return slices.ContainsFunc(list, func(p nn.Param) bool { return p.Adapter })
	})
}

// resume sets the trainer to the last checkpoint, whatever its layout was.
func (s *steps) resume(ctx context.Context) error {
	r, o := s.r, &s.r.O
	dir, passed, err := ckpt.Latest(ctx, s.world, o.Save)
	for _, p := range passed {
		fmt.Fprintf(o.Out, "passed over: %v\n", p)
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errNoCheckpoint, err)
	}
	if err != nil {
		return err
	}
	var p progress // first, as another run may have other tensors
	if err := ckpt.Load(ctx, s.world, dir, &p, nil); err != nil {
		return err
	}
	if o.Check != nil {
		if err := o.Check(dir, p.Of); err != nil { // on all ranks alike
			return err
		}
	}
	list, err := s.t.Tensors(ctx, false)
	if err != nil {
		return s.alone(err)
	}
	if err := ckpt.Load(ctx, s.world, dir, nil, list); err != nil {
		return err
	}
	if x := s.t.Scaler(); x != nil && p.Scale != nil {
		if err := x.Restore(*p.Scale); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.Out, "resumed from step %d in %s\n", p.Step, o.Save)
	s.last, r.BestScore, r.BestStep, r.bad = p.Step, p.Best.Loss, p.Best.Step, p.Best.Bad
	r.scored = p.Best.Scored || p.Best.Step > 0 // checkpoints of before 0.4.0 do not say that step 0 was scored
	return s.t.Restore(ctx, list)
}

// bufs are a checkpoint's tensors as memory.
func bufs(list []ckpt.Tensor) (out []ccl.Buf) {
	for _, t := range list {
		switch x := t.Data.(type) {
		case ccl.Buf:
			out = append(out, x)
		case []float32:
			out = append(out, ccl.BufOf(x))
		}
	}
	return out
}

// restored brings all ranks to the last step whose state all of them have, in their own memory or in that of others.
func (s *steps) restored(ctx context.Context) (found bool, err error) {
	list, err := s.t.Tensors(ctx, true)
	if err != nil {
		return false, s.alone(err)
	}
	r := s.r
	renew := func() {
		m := &mirror.Options{Every: r.O.Mirror}
		if len(list) > 0 {
			m.On = list[0].On
		}
		r.mirror = mirror.New(m)
	}
	if r.mirror == nil {
		renew()
	}
	step, err := r.mirror.Restore(ctx, s.world, s.world.Fresh(), bufs(list)...)
	if errors.Is(err, mirror.ErrLost) && r.O.Save != "" { // on all ranks, which go on from a checkpoint
		fmt.Fprintln(r.O.Out, err)
		_ = r.mirror.Close()
		renew()
		step, err = r.mirror.Restore(ctx, s.world, nil, bufs(list)...)
	}
	if err != nil || step < 0 {
		return false, err
	}
	if err := s.t.Restore(ctx, list); err != nil {
		return false, s.alone(err)
	}
	s.world.Restored()
	fmt.Fprintf(r.O.Out, "going on from step %d, which was mirrored\n", step)
	if s.last = step; s.saver != nil {
		s.saver.Saved = -1
	}
	return true, nil
}

// mirrored mirrors the state after a step.
func (s *steps) mirrored(ctx context.Context, step int) error {
	if s.r.O.Mirror == 0 || step%s.r.O.Mirror != 0 {
		return nil
	}
	list, err := s.t.Tensors(ctx, true)
	if err != nil {
		return s.alone(err)
	}
	return s.r.mirror.Save(ctx, step, bufs(list)...)
}

// On makes a machine and a trainer on it, and runs the steps.
func (r *Run) On(ctx context.Context, world *ccl.Comm, o *machine.Options,
	trainer func(m *machine.Machine) (*fit.Trainer, error)) error {
	m, err := machine.New(ctx, world, o)
	if err != nil {
		world.Abort(err)
		return err
	}
	err = r.on(ctx, m, trainer)
	if left := m.Close(); err == nil { // what an error leaves behind is not worth a word
		err = left
	}
	return err
}

func (r *Run) on(ctx context.Context, m *machine.Machine, trainer func(m *machine.Machine) (*fit.Trainer,
	error)) error {
	if err := ccl.Barrier(ctx, m.World()); err != nil { // before anybody compiles, all have a device
		return err
	}
	t, err := trainer(m)
	if err != nil {
		m.World().Abort(err)
		return err
	}
	return errors.Join(r.Train(ctx, t), t.Close())
}

// Divide returns how many of n ranks rows divide among, in micro batches: for Keep.
func Divide(rows, micro int) func(n int) int {
	return func(n int) int {
		for n > 1 && rows%(n*micro) != 0 {
			n--
		}
		return n
	}
}

// Keep trains on the ranks of world, and goes on when some are lost: with spares that take their
// places, where Mirror is set; else with those that are left, where Recover is. size is how many of
// n ranks can be used. It returns the last Comm.
func (r *Run) Keep(ctx context.Context, world *ccl.Comm, size func(n int) int,
	train func(ctx context.Context, world *ccl.Comm) error) (last *ccl.Comm, err error) {
	defer func() {
		if r.mirror != nil {
			if failed := r.mirror.Close(); err == nil {
				err = failed
			}
			r.mirror = nil
		}
	}()
	for {
		err := train(ctx, world)
		if err == nil || !r.O.Recover && r.O.Mirror == 0 || !resume.Lost(world, err) {
			return world, err
		}
		began, out := time.Now(), r.O.Out
		if out == nil {
			out = io.Discard
		}
		next, used, failed := r.next(ctx, world, err, size)
		if world = next; failed != nil || !used {
			return world, failed
		}
		if world.Rank() == 0 {
			fmt.Fprintf(out, "%v\ngoing on with %d rank(s) after %.2f s, from the last state that was kept; the last line was of step %d\n",
				err, world.Size(), time.Since(began).Seconds(), r.Said)
		}
		r.O.Resume, r.again = r.O.Save != "", true
	}
}

// next is the Comm to go on with.
func (r *Run) next(ctx context.Context, world *ccl.Comm, cause error, size func(int) int) (next *ccl.Comm,
	used bool, err error) {
	if r.O.Mirror > 0 {
		next, err := world.Replace(ctx)
		if err == nil {
			world.Close()
			return next, true, nil
		}
		var e *ccl.Error
		tooFew := errors.As(err, &e) && (e.Code == ccl.ErrRankLost && len(e.Missing) > 0 || e.Code == ccl.ErrUnsupported)
		if !r.O.Recover || !tooFew {
			return world, false, err
		}
		r.O.Mirror = 0 // on all ranks alike: those that are left go on from a checkpoint
		if r.mirror != nil {
			_ = r.mirror.Close()
			r.mirror = nil
		}
	}
	return resume.Shrink(ctx, world, cause, size)
}
