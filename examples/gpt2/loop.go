package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla"
)

// peaks are what devices multiply in bfloat16, in FLOP/s, without sparsity, by their names' beginnings.
var peaks = []struct {
	name  string
	flops float64
}{{"NVIDIA H100 PCIe", 756e12}, {"NVIDIA H100", 989e12}, {"NVIDIA H200", 989e12}, {"NVIDIA A100", 312e12}}

// train trains on the ranks of world.
func (r *run) train(ctx context.Context, world *ccl.Comm, c *config) (err error) {
	out := r.out
	if world.Rank() > 0 {
		out = io.Discard
	}
	if err := c.place(world.Size()); err != nil {
		return err
	}
	rows, err := newSource(c)
	if err != nil {
		return alone(world, err)
	}
	if c.export != "" {
		return export(c, rows)
	}
	m, err := newMachine(ctx, world, c, out)
	if err != nil {
		return alone(world, err)
	}
	defer func() {
		if left := m.close(); err == nil { // what an error leaves behind is not worth a word
			err = left
		}
	}()
	if err := ccl.Barrier(ctx, world); err != nil { // before anybody compiles, all have a device
		return err
	}
	if c.cudnn = c.attn == "cudnn" || c.attn == "" && m.client.Platform() == "cuda" && c.fits(); c.cudnn &&
		m.client.Platform() != "cuda" {
		return alone(world, fmt.Errorf("-attn cudnn: this is %s", m.client.Platform()))
	}
	r.greet(out, m, c)
	t, err := newTrainer(ctx, m, c)
	if err != nil {
		return alone(world, err)
	}
	defer func() { err = errors.Join(err, t.close()) }()
	return r.steps(ctx, m, c, t, rows, out)
}

// alone returns err, which may have happened on this rank alone. It aborts the Comm with err, so
// that the ranks that wait for this rank say why it is gone.
func alone(world *ccl.Comm, err error) error {
	world.Abort(err)
	return err
}

func newTrainer(ctx context.Context, m *machine, c *config) (trainer, error) {
	switch {
	case c.stage == 0 && !c.parts:
		return newReplica(ctx, m, c)
	case c.bf16:
		return newSharded[ccl.BFloat16](ctx, m, c)
	default:
		return newSharded[float32](ctx, m, c)
	}
}

// greet says what is trained, and where.
func (r *run) greet(out io.Writer, m *machine, c *config) {
	attention := "softmax"
	if c.cudnn {
		attention = "cuDNN's"
	}
	fmt.Fprintf(out, "%d rank(s) of %v; engine %s\n", m.world.Size(), m.client, m.world.Backend())
	fmt.Fprintf(out, "%.2f M parameters; %d rows of %d tokens a step; products in %s, residual stream in %s, %s attention; ZeRO stage %d\n",
		float64(c.count())/1e6, c.rows, c.context, c.act, c.res, attention, c.stage)
}

// rate is the learning rate of a step.
func (c *config) rate(step int) float64 {
	if c.warmup == 0 {
		return c.lr
	}
	return optim.Cosine(step, c.warmup, c.steps, c.lr, c.lr/10)
}

// steps are the steps of a run. Losses are read every -log steps, so that nothing waits for the device between.
func (r *run) steps(ctx context.Context, m *machine, c *config, t trainer, rows *source, out io.Writer) (err error) {
	o := &history.Options{}
	if c.json != "" && m.world.Rank() == 0 {
		open := files.Create
		if r.again { // the lines of what is done once more replace those before
			open = files.Append
		}
		f, err := open(c.json)
		if err != nil {
			m.world.Abort(err)
			return err
		}
		defer f.Close()
		o.JSON = f
	}
	h, err := history.New(ctx, m.world, o)
	if err != nil {
		return err
	}
	lines := bufio.NewReader(r.in)
	var pending [][]*xla.Buffer
	defer func() {
		for _, p := range pending {
			err = errors.Join(err, xla.FreeAll(p...))
		}
	}()
	saver, last, err := r.start(ctx, m.world, c, t, out)
	if err != nil {
		return err
	}
	if saver != nil {
		defer func() { err = errors.Join(err, saver.Close(ctx)) }()
	}
	first := last + 1
	stopped, began, from := []uint8{0}, time.Now(), first // from: the first step since began
	for step := first; step <= c.steps && stopped[0] == 0; step++ {
		if c.pace && (step-1)%c.log == 0 {
			if _, err := lines.ReadString('\n'); err != nil {
				return fmt.Errorf("-pace: %w", err)
			}
			began, from = time.Now(), step
		}
		losses, err := r.step(ctx, m, c, t, rows, step)
		if err != nil {
			return alone(m.world, fmt.Errorf("step %d: %w", step, err))
		}
		pending = append(pending, losses)
		say := step == first || step%c.log == 0 || step == c.steps
		if !say && !c.wait {
			continue
		}
		if err := r.read(ctx, m, &pending, step); err != nil {
			return err
		}
		if !say {
			continue
		}
		if err := r.log(ctx, m, h, c, out, step, time.Since(began)/time.Duration(step-from+1)); err != nil {
			return err
		}
		select {
		case <-r.stop:
			stopped[0] = 1
		default:
		}
		if err := ccl.AllReduce(ctx, m.world, stopped, stopped, ccl.Max); err != nil {
			return err
		}
		r.said = step
		if last = step; saver != nil && c.every > 0 && step%c.every == 0 {
			if err := c.keepState(ctx, saver, t, step); err != nil {
				return err
			}
		}
		began, from = time.Now(), step+1
	}
	if stopped[0] == 1 {
		fmt.Fprintf(out, "interrupted after step %d\n", last)
	}
	if saver != nil && last >= first {
		if err := errors.Join(c.keepState(ctx, saver, t, last), saver.Finish(ctx)); err != nil {
			return err
		}
		fmt.Fprintf(out, "saved step %d in %s\n", last, c.save)
	}
	if memory, err := m.client.Memory(); err == nil && memory.Peak > 0 {
		fmt.Fprintf(out, "at most %.2f GiB on the device\n", float64(memory.Peak)/(1<<30))
	}
	if c.svg != "" && m.world.Rank() == 0 {
		f, err := files.Create(c.svg)
		if err != nil {
			return err
		}
		return errors.Join(h.SVG(f, "loss"), f.Close())
	}
	return nil
}

// step makes a step with this rank's rows.
func (r *run) step(ctx context.Context, m *machine, c *config, t trainer, rows *source,
	step int) (losses []*xla.Buffer, err error) {
	var batches []*xla.Buffer
	defer func() { err = errors.Join(err, xla.FreeAll(batches...)) }()
	for i := range c.micro {
		b, err := xla.Put(m.client, rows.batch(step, m.world.Rank(), i), c.batch(), c.context+1)
		if err != nil {
			return nil, err
		}
		batches = append(batches, b)
	}
	return t.step(ctx, step, c.rate(step), batches)
}

// read waits for losses, and makes them those of all ranks.
func (r *run) read(ctx context.Context, m *machine, pending *[][]*xla.Buffer, step int) error {
	mean := make([]float64, len(*pending))
	for i, list := range *pending {
		for _, b := range list {
			x := []float32{0}
			if err := xla.Get(b, x); err != nil {
				return alone(m.world, err)
			}
			mean[i] += float64(x[0]) / float64(len(list))
		}
		if err := xla.FreeAll(list...); err != nil {
			return err
		}
		(*pending)[i] = nil
	}
	*pending = (*pending)[:0]
	if err := ccl.AllReduce(ctx, m.world, mean, mean, ccl.Avg); err != nil {
		return err
	}
	r.losses = append(r.losses, mean...)
	for i, x := range mean {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("step %d: the loss is %v: lower -lr, or clip (-clip)", step-len(mean)+1+i, x)
		}
	}
	return nil
}

// log says how the last steps went, each of which took dt.
func (r *run) log(ctx context.Context, m *machine, h *history.History, c *config, out io.Writer, step int,
	took time.Duration) error {
	dt := took.Seconds()
	tps := float64(c.rows*c.context) / dt
	metrics := []history.Metric{{Name: "loss", Value: r.losses[len(r.losses)-1]}, {Name: "dt", Value: dt},
		{Name: "tps", Value: tps}}
	line := fmt.Sprintf("step=%d loss=%.5f dt=%.5f tps=%.0f", step, metrics[0].Value, dt, tps)
	for _, p := range peaks {
		if m.client.Named(p.name) {
			mfu := history.MFU(tps, c.flops(), p.flops*float64(m.world.Size()))
			metrics = append(metrics, history.Metric{Name: "mfu", Value: mfu})
			line += fmt.Sprintf(" mfu=%.1f", mfu)
			break
		}
	}
	fmt.Fprintln(out, line)
	return h.Log(ctx, step, metrics...)
}
