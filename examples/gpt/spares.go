package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/mirror"
)

// healing is what the flags say about ranks that take the place of others.
type healing struct {
	spares int // ranks of the job that wait
	mirror int // steps between two that are mirrored
}

// kept is what a rank of a job with spares keeps from one Comm to the next.
type kept struct {
	mirror  *mirror.Mirror
	old     *trainer       // of the Comm that has failed: where all ranks hold the same, the state is in it
	saver   *saver         // likewise
	closing sync.WaitGroup // of what belonged to Comms that have failed
	logged  int            // the last step whose line this rank has written
	over    bool           // all ranks have come to the end of their work
}

// drop closes what belonged to a Comm that has failed, which may take a moment.
func (k *kept) drop(tr *trainer) {
	if tr != nil {
		k.closing.Go(func() { _ = tr.close() })
	}
}

// close ends the Mirror, and waits for what is being closed.
func (k *kept) close() error {
	k.drop(k.old)
	k.old = nil
	var err error
	if k.mirror != nil {
		err = k.mirror.Close()
		k.mirror = nil
	}
	k.closing.Wait()
	return err
}

// replicas returns which ranks hold the same state, by their coordinates; nil if each has its own.
func (c *config) replicas() func(rank int) int {
	ep := c.experts.ranks
	dp := c.dp / c.apart.sites / ep
	if c.stage > 0 || dp*c.across == 1 {
		return nil
	}
	pp, across, tp := c.pp, c.across, c.tp
	return func(rank int) int {
		stage := rank / tp / across
		return ((stage/pp/ep/dp*ep+stage/pp%ep)*pp+stage%pp)*tp + rank%tp
	}
}

// state is all that a step changes and the next one depends on.
func (tr *trainer) state() []ccl.Buf {
	bufs := []ccl.Buf{ccl.BufOf(tr.mean)}
	for i := range tr.all {
		bufs = append(bufs, ccl.BufOf(tr.model.Shard(i)), ccl.BufOf(tr.adam.m[i]), ccl.BufOf(tr.adam.v[i]))
	}
	if tr.experts != nil {
		bufs = append(bufs, ccl.BufOf(tr.experts.bias))
	}
	return append(bufs, tr.comms.sites.state()...)
}

// take copies the state of a trainer of the same place in the layout.
func (tr *trainer) take(old *trainer) {
	copy(tr.mean, old.mean)
	for i := range tr.all {
		copy(tr.model.Shard(i), old.model.Shard(i))
		copy(tr.adam.m[i], old.adam.m[i])
		copy(tr.adam.v[i], old.adam.v[i])
	}
	if tr.experts != nil {
		copy(tr.experts.bias, old.experts.bias)
	}
	tr.comms.sites.take(old.comms.sites)
}

// restore brings all ranks of a job with spares to the last step whose state all of them have, in
// their own memory or that of others. Where there is none, the run begins, or goes on from a
// checkpoint. It is collective.
func (r *run) restore(ctx context.Context, tr *trainer, out io.Writer) (step int, found bool, err error) {
	c, k, world := tr.cfg, &r.kept, tr.world
	renew := func() { k.mirror = mirror.New(&mirror.Options{Every: c.mirror, Shard: c.replicas()}) }
	if k.mirror == nil {
		renew()
	}
	if k.old != nil { // before it is closed
		tr.take(k.old)
		k.drop(k.old)
		k.old = nil
	}
	fresh, bufs := world.Fresh(), tr.state()
	again := len(fresh) > 0 || r.lost != nil
	if again && r.lost == nil { // on a rank that has just come
		r.lost = &loss{cause: errors.New("nobody here has seen how"), at: time.Now()}
	}
	step, err = k.mirror.Restore(ctx, world, fresh, bufs...)
	if errors.Is(err, mirror.ErrLost) && c.save != "" { // on all ranks
		fmt.Fprintln(out, err)
		_ = k.mirror.Close()
		renew()
		step, err = k.mirror.Restore(ctx, world, nil, bufs...)
	}
	if err != nil {
		return 0, false, err
	}
	if step >= 0 {
		if err := tr.model.Loaded(ctx); err != nil {
			return 0, false, err
		}
		world.Restored()
		return step, true, r.replaced(ctx, world, fresh, step)
	}
	if err := tr.begin(ctx); err != nil {
		return 0, false, err
	}
	c.resume = c.resume || again && c.save != ""
	if step, found, err = r.start(ctx, tr, out); err != nil {
		return 0, false, err
	}
	world.Restored()
	if again && !found {
		if err := r.replaced(ctx, world, fresh, 0); err != nil {
			return 0, false, err
		}
	}
	return step, found, k.mirror.Save(ctx, step, bufs...)
}

// replaced says who was lost, how long ago, and which step the ranks go on from. The first rank that is no spare
// prints it, since it knows the step. replaced is collective.
func (r *run) replaced(ctx context.Context, world *ccl.Comm, fresh []int, step int) error {
	speaker := 0
	for speaker < world.Size()-1 && slices.Contains(fresh, speaker) {
		speaker++
	}
	was := []int64{int64(r.step), 0}
	if !slices.Contains(fresh, world.Rank()) {
		was[1] = time.Since(r.lost.at).Milliseconds()
	}
	if err := ccl.AllReduce(ctx, world, was, was, ccl.Max); err != nil {
		return err
	}
	if world.Rank() != speaker {
		return nil
	}
	who, did := "no rank is lost", "all go on"
	if len(fresh) > 0 {
		who, did = lostRanks(fresh)+" lost", "replaced by "+count(len(fresh), "spare", "s")
	}
	again := since(step, int(was[0]), "made again")
	fmt.Fprintf(r.out, "%s: %v; %s in %d ms, from step %d: %s\n", who, r.lost.why(), did, was[1], step, again)
	return nil
}

// why is the cause of a loss, without the call that has met it.
func (l *loss) why() error {
	var e *ccl.Error
	if errors.As(l.cause, &e) && e.Err != nil && errors.Is(e, ccl.ErrRankLost) {
		return e.Err
	}
	return l.cause
}

// lostRanks is numbers of ranks as people write them.
func lostRanks(numbers []int) string {
	words := strings.Fields(strings.Trim(fmt.Sprint(numbers), "[]"))
	if n := len(words); n > 1 {
		return "ranks " + strings.Join(words[:n-1], ", ") + " and " + words[n-1]
	}
	return "rank " + strings.Join(words, "")
}

// leave is the end of a trainer, by err or without. With spares it stays until its successor is made.
func (r *run) leave(tr *trainer, err error) error {
	if tr.cfg.spares == 0 || err == nil {
		return errors.Join(err, tr.close())
	}
	if r.kept.old != nil { // whose state tr has not taken yet
		r.kept.drop(tr)
	} else {
		r.kept.old = tr
	}
	return err
}

// leaveSaver is the same of what makes checkpoints.
func (r *run) leaveSaver(ctx context.Context, s *saver, err error) error {
	if s.tr.cfg.spares == 0 || err == nil {
		return errors.Join(err, s.Close(ctx))
	}
	r.kept.saver = s
	return err
}

// comeTo brings a trainer to where the run begins or goes on, and returns the last step that was
// done. It is collective.
func (r *run) comeTo(ctx context.Context, tr *trainer, out io.Writer) (step int, found bool, err error) {
	if tr.cfg.spares > 0 {
		return r.restore(ctx, tr, out)
	}
	if err := tr.begin(ctx); err != nil {
		return 0, false, err
	}
	return r.start(ctx, tr, out)
}

// rewind has the file of metrics end with the step that a replacement has come back to. It is collective.
func (r *run) rewind(ctx context.Context, h *history.History, out io.Writer, tr *trainer, step int) error {
	if c := tr.cfg; tr.world.Rank() > 0 {
	} else if c.json != "" {
		last, err := cutAfter(c.json, step)
		if err != nil {
			tr.world.Abort(err)
			return err
		}
		r.kept.logged = last
	} else if slices.Contains(tr.world.Fresh(), 0) { // nobody knows
		r.kept.logged = step
	}
	return r.relog(ctx, h, out, tr, step)
}

// relog writes the line of the step that a replacement has come back to, where the rank that writes
// was lost before it did. It is collective.
func (r *run) relog(ctx context.Context, h *history.History, out io.Writer, tr *trainer, step int) error {
	missing := []uint8{0}
	if tr.world.Rank() == 0 && tr.mean[0] != 0 && r.kept.logged < step { // a checkpoint has no mean
		missing[0] = 1
	}
	if err := ccl.AllReduce(ctx, tr.world, missing, missing, ccl.Max); err != nil || missing[0] == 0 {
		return err
	}
	return r.log(ctx, h, out, tr, step, []history.Metric{{Name: "loss", Value: tr.mean[0]}})
}

// farewell returns when all ranks have come to the end of their work: until then one that is lost
// is replaced, and takes the others with it back to the last step. A rank that has passed the first
// barrier knows that, whatever it meets in the second.
func (r *run) farewell(ctx context.Context, world *ccl.Comm) error {
	if err := r.kept.mirror.Wait(ctx); err != nil {
		return err
	}
	if err := ccl.Barrier(ctx, world); err != nil {
		return err
	}
	r.kept.over = true
	return ccl.Barrier(ctx, world)
}
