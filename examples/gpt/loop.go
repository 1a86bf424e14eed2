package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/mat"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/history/timeline"
)

// run is one rank's run, over all that it recovers from.
type run struct {
	stop     <-chan os.Signal
	stopping bool      // a signal has come, to this rank or another; it holds over what the run recovers from
	out      io.Writer // what rank 0 says
	step     int       // the last that was done
	over     bool      // it has come to its end
	lost     *loss
	line     *timeline.Timeline // nil: none is drawn
	kept     kept               // of a job with spares
	peak     float64            // of a core, in operations a second
	meter    *meter             // nil: nobody watches
	hook     func(step int)     // before a step; for tests
}

// train trains on the ranks of world.
func (r *run) train(ctx context.Context, world *ccl.Comm, c *config) (err error) {
	first, out := world.Rank() == 0, r.out
	if !first {
		out = io.Discard
	}
	raw, err := data.OnRoot(ctx, world, 0, func() ([]byte, error) { return read(source(c.data)) })
	if err != nil {
		return err
	}
	vocab := c.Vocab
	defer func() { c.Vocab = vocab }()
	text, err := newText(source(c.data), raw, c.Context, c.Vocab)
	if err != nil {
		return err
	}
	c.Vocab = text.vocab
	if c.draws.sample != "" {
		if _, err := text.encode(c.draws.sample); err != nil {
			return err
		}
	}
	tr, err := placeTrainer(ctx, world, c, text)
	if err != nil {
		return err
	}
	defer func() { err = r.leave(tr, err) }()
	tr.line = r.line
	if err := drawn(ctx, world, r.line); err != nil {
		return err
	}
	var saver *saver
	if c.save != "" {
		if saver, err = newSaver(ctx, tr); err != nil {
			return err
		}
		defer func() { err = r.leaveSaver(ctx, saver, err) }()
	}
	resumed := c.resume || r.lost != nil || len(world.Fresh()) > 0 // whose steps replace those that were lost
	from, found, err := r.comeTo(ctx, tr, out)
	if err != nil { // before a file is emptied: a run that is refused leaves the metrics of the one before
		return err
	}
	o := &history.Options{}
	if c.json != "" && first {
		open := files.Create
		if resumed {
			open = files.Append
		}
		f, err := open(c.json)
		if err == nil && resumed {
			err = endLine(f)
		}
		if err != nil {
			world.Abort(err)
			return err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		o.JSON = f
	}
	finish, err := c.tracking.open(world, o)
	if err != nil {
		return err
	}
	h, err := history.New(ctx, tr.comms.site, o)
	if err != nil {
		return finish(nil, err)
	}
	defer func() { err = finish(h, err) }()
	if found {
		h.Rewind(from)
	}
	replaced := c.spares > 0 && r.lost != nil
	if replaced {
		if err := r.rewind(ctx, h, out, tr, from); err != nil {
			return err
		}
		if err := saver.again(ctx, from); err != nil {
			return err
		}
	}
	if c.recover && !found { // so that there is always one to go on from
		if err := saver.begin(ctx, 0); err != nil {
			return err
		}
	}
	flops := history.FlopsPerToken(gpt.Active(c.Config)-c.Vocab*c.Width-c.Context*c.Width, c.Layers, c.Width, c.Context)
	if c.Tied { // whose wte is the head, too
		flops += 6 * float64(c.Vocab*c.Width)
	}
	if r.peak == 0 {
		r.peak = mat.Peak()
	}
	busy, err := cores(ctx, world)
	if err != nil {
		return err
	}
	peak := r.peak * float64(busy)
	if !replaced {
		tr.greet(out, flops, peak)
	}
	state := tr.state()
	begin, exposed, stopped := time.Now(), time.Duration(0), []uint8{0}
	r.step = from
	for step := from + 1; step <= c.steps && stopped[0] == 0; step++ {
		if r.hook != nil {
			r.hook(step)
		}
		loss, t, err := tr.step(ctx, step)
		if err == nil && c.spares > 0 { // before anything that waits: a rank that is lost now must not take the state with it
			err = r.kept.mirror.Save(ctx, step, state...)
		}
		if err != nil {
			return err
		}
		if err := finite(loss); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		exposed += t.dtx
		if err := r.log(ctx, h, out, tr, step, r.measured(c, loss, t, flops, peak)); err != nil {
			return err
		}
		r.kept.logged = step
		more, err := tr.metrics(ctx)
		if err == nil && more != nil {
			err = h.Log(ctx, step, more...)
		}
		if err != nil {
			return err
		}
		select {
		case <-r.stop:
			r.stopping = true
		default:
		}
		if r.stopping {
			stopped[0] = 1
		}
		if step%max(c.apart.o.Every, 1) == 0 { // where sites meet anyway
			err = ccl.AllReduce(ctx, world, stopped, stopped, ccl.Max)
		} else {
			stopped[0] = 0
		}
		if err != nil {
			return err
		}
		if first {
			r.meter.step(from, step, c.steps, begin)
		}
		// Each rank keeps both, since the rank that was interrupted may be lost.
		r.step, r.stopping = step, r.stopping || stopped[0] == 1
		if err := saver.after(ctx, step); err != nil {
			return err
		}
	}
	if stopped[0] == 1 {
		fmt.Fprintf(out, "interrupted after step %d\n", r.step)
	}
	if err := tr.comms.sites.flush(ctx); err != nil {
		return err
	}
	wall, done := time.Since(begin), r.step-from
	most := []float64{resident()}
	if err := ccl.AllReduce(ctx, world, most, most, ccl.Max); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s, %s in %.1f s: %.0f tokens/s; exposed communication %.1f %%", count(done, "step", "s"),
		count(done*c.rows*c.Context, "token", "s"),
		wall.Seconds(), float64(done*c.rows*c.Context)/wall.Seconds(), 100*exposed.Seconds()/max(wall.Seconds(), 1e-9))
	if most[0] > 0 {
		fmt.Fprintf(out, "; %.0f MB resident in a rank at most", most[0]/1e6)
	}
	fmt.Fprintln(out)
	tr.adam.say(out, done)
	tr.comms.sites.say(out, done)
	if saver != nil {
		ends := r.step > from || replaced // by a checkpoint, which the loss may have cost where it came after the last step
		if ends {
			err = saver.begin(ctx, r.step)
		}
		if err = errors.Join(err, saver.Finish(ctx)); err != nil {
			return err
		}
		if ends {
			fmt.Fprintf(out, "saved step %d in %s\n", r.step, c.save)
		}
	}
	if c.draws.sample != "" && stopped[0] == 0 {
		var s string
		failed := tr.comms.sites.within(ctx, func() { s, err = tr.sample(ctx, c.draws.sample, c.draws.tokens) })
		if err := cmp.Or(err, failed); err != nil {
			return err
		}
		c.say(out, s)
	}
	if c.svg != "" && first {
		if err := picture(h, c.svg); err != nil {
			return err
		}
	}
	if err := draw(ctx, r.line, world, c.files.timeline); err != nil {
		return err
	}
	if c.spares > 0 {
		if err := r.farewell(ctx, world); err != nil {
			return err
		}
	}
	r.over = true
	return nil
}

// measured are the metrics of a step.
func (r *run) measured(c *config, loss float64, t times, flops, peak float64) []history.Metric {
	tps := float64(c.rows*c.Context) / t.dt.Seconds()
	return []history.Metric{{Name: "loss", Value: loss}, {Name: "dt", Value: t.dt.Seconds()},
		{Name: "dtf", Value: t.dtf.Seconds()},
		{Name: "dtb", Value: t.dtb.Seconds()}, {Name: "dto", Value: t.dto.Seconds()}, {Name: "dtc", Value: t.dtc.Seconds()},
		{Name: "dtx", Value: t.dtx.Seconds()}, {Name: "tps", Value: tps}, {Name: "mfu", Value: history.MFU(tps, flops, peak)}}
}

// log records a step, says it, and validates if it is time to.
func (r *run) log(ctx context.Context, h *history.History, out io.Writer, tr *trainer, step int,
	m []history.Metric) error {
	c := tr.cfg
	validated := c.eval > 0 && step%c.eval == 0
	if validated {
		l, err := tr.eval(ctx)
		if err != nil {
			return err
		}
		m = append(m, history.Metric{Name: validation, Value: l})
	}
	if err := h.Log(ctx, step, m...); err != nil {
		return err
	}
	if step <= 3 || step%c.log == 0 || step == c.steps {
		line(out, h, step)
	}
	if validated {
		fmt.Fprintf(out, "step=%d validation=%.4f\n", step, m[len(m)-1].Value)
	}
	return nil
}
