package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/resume"
)

// loss is what a run knows of the rank that it has lost.
type loss struct {
	cause error
	at    time.Time
	step  int // the last step that was done
}

// keepOn trains. With spares it goes on with those that replace what is lost, and with -recover
// with the ranks that are left. It returns the last Comm.
func keepOn(ctx context.Context, world *ccl.Comm, c *config, r *run) (last *ccl.Comm, err error) {
	defer func() {
		r.settle(ctx, nil) // a checkpoint under way is whole before its Comm ends
		if failed := r.kept.close(); err == nil && !r.kept.over {
			err = failed
		}
	}()
	for {
		err := r.train(ctx, world, c)
		if err != nil && r.kept.over { // all work is done, and some ranks may have left
			r.over, err = true, nil
		}
		if err == nil || !c.recover && c.spares == 0 || !resume.Lost(world, err) {
			return world, err
		}
		r.lost = &loss{cause: err, at: time.Now(), step: r.step}
		if c.spares > 0 {
			next, failed := world.Replace(ctx)
			if failed == nil {
				r.lost.cause = cause(world, err)
				r.settle(ctx, world)
				world = next
				continue
			}
			if !c.recover || !tooFew(failed) {
				return world, failed
			}
			c.spares = 0 // on all ranks alike: those that are left go on
			r.settle(ctx, nil)
			if err := r.kept.close(); err != nil && !resume.Lost(world, err) {
				return world, err
			}
		}
		next, goesOn, failed := c.shrink(ctx, world, err)
		if world = next; failed != nil || !goesOn {
			return world, failed
		}
	}
}

// settle closes what belonged to a Comm that has been replaced. A checkpoint under way must end
// before the next one begins; the rest takes its time.
func (r *run) settle(ctx context.Context, failed *ccl.Comm) {
	if s := r.kept.saver; s != nil {
		_ = s.Close(ctx)
		r.kept.saver = nil
	}
	if failed != nil {
		r.kept.closing.Go(func() { _ = failed.Close() })
	}
}

// tooFew reports whether Replace has failed because fewer spares wait than ranks are lost.
func tooFew(err error) bool {
	var e *ccl.Error
	return errors.As(err, &e) && e.Code == ccl.ErrRankLost && len(e.Missing) > 0
}

// cause is why world has failed, or err if it has not.
func cause(world *ccl.Comm, err error) error {
	if e := world.Err(); e != nil {
		return e
	}
	return err
}

// shrink returns the Comm of the ranks that are left of world, as many as the layout can use.
// Without goesOn this rank is none of them.
func (c *config) shrink(ctx context.Context, world *ccl.Comm, cause error) (next *ccl.Comm, goesOn bool, err error) {
	next, goesOn, err = resume.Shrink(ctx, world, cause, c.fit)
	if err == nil && c.fit(next.Size()) == 0 {
		err = fmt.Errorf("%s left, too few for the layout: %w", count(next.Size(), "rank", "s"), cause)
	}
	if err != nil || !goesOn {
		return next, false, err
	}
	c.dp, c.resume = 0, true
	return next, true, c.place(next.Size())
}

// start loads the checkpoint to go on from, and returns its step. Where there is none, found is false: the run begins.
func (r *run) start(ctx context.Context, tr *trainer, out io.Writer) (step int, found bool, err error) {
	c := tr.cfg
	if !c.resume && c.save == "" {
		return 0, false, nil
	}
	if !c.resume { // the first Save would find out
		switch dir, _, err := ckpt.Latest(ctx, tr.world, c.save); {
		case err == nil:
			return 0, false, fmt.Errorf("-save %s has %s: resume from it with -resume, or name another directory", c.save, dir)
		case errors.Is(err, os.ErrNotExist):
			return 0, false, nil
		default:
			return 0, false, err
		}
	}
	back := r.lost == nil && c.from >= 0
	dir := ckpt.Step(c.save, c.from)
	if !back {
		var passed []error
		dir, passed, err = ckpt.Latest(ctx, tr.world, c.save)
		if errors.Is(err, os.ErrNotExist) { // on all ranks
			fmt.Fprintf(out, "there is no checkpoint in %s: beginning\n", c.save)
			return 0, false, nil
		} else if err != nil {
			return 0, false, err
		}
		for _, p := range passed {
			fmt.Fprintln(out, p)
		}
	}
	step, changed, err := tr.load(ctx, dir)
	if err == nil && back { // only now that it could be loaded
		err = ckpt.Forget(ctx, tr.world, c.save, c.from)
	}
	if err != nil {
		return 0, false, err
	}
	if r.lost == nil {
		fmt.Fprintf(out, "going on from %s\n", dir)
		if changed != "" {
			fmt.Fprintf(out, "changed since then: %s\n", changed)
		}
		if step >= c.steps {
			fmt.Fprintf(out, "step %d is done already, and -steps is %d: give more to train on\n", step, c.steps)
		}
		return step, true, nil
	}
	fmt.Fprintf(out, "%v\ngoing on with %s from %s after %.2f s: %s\n", r.lost.cause,
		count(tr.world.Size(), "rank", "s"), dir,
		time.Since(r.lost.at).Seconds(), since(step, r.lost.step, "lost"))
	return step, true, nil
}

// since says of the steps behind one, up to the last, what they are.
func since(step, last int, what string) string {
	switch {
	case last <= step:
		return "no step is lost"
	case last == step+1:
		return fmt.Sprintf("step %d is %s", last, what)
	}
	return fmt.Sprintf("steps %d to %d are %s", step+1, last, what)
}
