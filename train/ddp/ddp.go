// Package ddp keeps the replicas of a data-parallel job equal, as PyTorch's DistributedDataParallel
// (Li et al. 2020): it averages gradients in buckets while the backward pass still runs, and checks
// that parameters stay the same bits.
//
// It knows no tensor library: gradients are [ccl.Buf] views of whatever memory the program has, host or device, and the
// program says when each is final. Where the memory belongs to goccl, package zero does all of this at its stage 0.
//
// A parameter that a step does not use has a gradient of zeros, by which an update still moves it:
// it decays, and goes on along its moments. PyTorch's optimizers leave out a parameter whose
// gradient is None, that of one which no rank has used. A program that wants the same leaves it out
// of its update, on all ranks alike.
//
// Gradient accumulation (PyTorch's no_sync) needs no mode: add up micro batches, and call Ready in the last one only.
//
// In a step each of n ranks sends 2(n-1)/n of the gradients' bytes, with the Hook BFloat16 half of that. New
// compares its arguments with an all-reduce of 24 bytes, the first Wait broadcasts 8 bytes a gradient, and Same gathers
// 8n. A Reducer has no connections and no Comm of its own, and one goroutine.
package ddp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
	"github.com/goccl/goccl/train/internal/same"
)

// Options must agree on all ranks. New compares them, but for Stream and the Hook, of which it
// compares whether there is one. The zero value is the default.
type Options struct {
	// FirstBytes is the size in bytes at which the first bucket is full, by default 1 MiB. Bytes is that of every other
	// bucket, by default 25 MiB. As in PyTorch the gradient that fills a bucket is part of it, so buckets may be larger.
	FirstBytes, Bytes int
	// Sum adds up in place of averaging: for losses that are divided by the global batch already.
	Sum bool
	// Order is the order in which gradients become ready. Nil: last to first, then, after the first step, as they did
	// on rank 0.
	Order []int
	// Stream is the stream to reduce a bucket on, made to wait for the kernels that write the bucket. Nil, for host
	// memory, uses a HostStream of the Reducer's own.
	Stream func(bucket int) ccl.Stream
	// Hook reduces a bucket in the place of an all-reduce.
	Hook Hook
	// Names are what the gradients are called, one each, so that New finds gradients of one length
	// that come in another order on some rank, as a range over a map gives them. Nil: lengths and
	// types alone are compared.
	Names []string
}

// Reducer averages one set of gradients over the ranks of a Comm, once per step. It is used by one goroutine at a time.
type Reducer struct {
	c        *ccl.Comm
	o        Options
	op       ccl.Op
	host     *ccl.HostStream
	grads    []ccl.Buf
	bucketOf []int
	ready    []bool
	buckets  []bucket
	next     int   // the next bucket to issue
	seen     []int // the order of Ready in the first step; nil once it is known
	stats    Stats
	clock    clock
	places   raw.Places // of gradients
	closed   bool
	undone   error // of memory that was not given back; Close tells it
	used     bool  // Use was called: nothing is joined
	told     bool  // Wait has failed, and not for its context: the step under way has ended
}

// clock is how long reductions on the Reducer's own stream have taken, between on and off.
type clock struct {
	began   time.Time
	spent   time.Duration
	on, off func() error
}

// bucket is what is reduced in one go.
type bucket struct {
	Bucket
	ids   []int
	left  int
	bytes int
	work  ccl.Work
	timed ccl.Work // when that has ended
	group func(g ccl.Queue) error
}

// Stats are the times and bytes of the last step. Comm is 0 on a device.
type Stats struct {
	Bytes   int64         // handed to the reduction
	Comm    time.Duration // spent in reductions
	Exposed time.Duration // spent blocked in Wait: what overlap did not hide
}

// New returns a Reducer of grads. It is collective, and fails on every rank, naming the first
// gradient that differs, unless all ranks pass the same lengths, types and options; Options.Names
// tell gradients of one length apart. Gradients are reduced where they lie, without a copy. A
// bucket is one call if its gradients lie side by side in memory; else it is a group with a call
// for each piece.
func New(ctx context.Context, c *ccl.Comm, grads []ccl.Buf, o *Options) (*Reducer, error) {
	r := &Reducer{c: c, grads: slices.Clone(grads), host: ccl.NewHostStream(), op: ccl.Avg}
	if o != nil {
		r.o = *o
	}
	r.o.FirstBytes, r.o.Bytes = cmp.Or(r.o.FirstBytes, 1<<20), cmp.Or(r.o.Bytes, 25<<20)
	if r.o.Sum {
		r.op = ccl.Sum
	}
	var bad error
	items := []string{fmt.Sprintf("FirstBytes %d", r.o.FirstBytes), fmt.Sprintf("Bytes %d", r.o.Bytes),
		fmt.Sprintf("Sum %v", r.o.Sum),
		fmt.Sprintf("Order %d", r.o.Order), fmt.Sprintf("Hook %v", r.o.Hook != nil)}
	for i, g := range grads {
		item := fmt.Sprintf("gradient %d: %d x %v", i, g.Len(), g.Type())
		if i < len(r.o.Names) {
			item += fmt.Sprintf(" of %q", r.o.Names[i])
		}
		items = append(items, item)
		if _, within := g.Join(g.From(0, 0)); bad == nil && !within { // nor a part of one
			bad = fmt.Errorf("gradient %d is not a buffer, or was cut out of one beyond its end", i)
		}
	}
	if bad == nil {
		bad = apart(&r.places, grads)
	}
	if r.o.Names != nil && len(r.o.Names) != len(grads) {
		bad = fmt.Errorf("%d Names of %d gradients", len(r.o.Names), len(grads))
	}
	if r.o.FirstBytes < 0 || r.o.Bytes < 0 {
		bad = fmt.Errorf("buckets of %d and %d bytes", r.o.FirstBytes, r.o.Bytes)
	}
	if r.o.Order != nil && !permutation(r.o.Order, len(grads)) {
		bad = fmt.Errorf("the Order %d is not a permutation of %d gradients", r.o.Order, len(grads))
	}
	if err := same.Args(ctx, c, "ddp", bad, items...); err != nil {
		return nil, err
	}
	r.clock.on = func() error { r.clock.began = time.Now(); return nil }
	r.clock.off = func() error { r.clock.spent += time.Since(r.clock.began); return nil }
	r.bucketOf, r.ready = make([]int, len(grads)), make([]bool, len(grads))
	order := slices.Clone(r.o.Order)
	if order == nil {
		for i := len(grads) - 1; i >= 0; i-- {
			order = append(order, i)
		}
		r.seen = make([]int, 0, len(grads))
	}
	r.fill(order)
	return r, nil
}

// apart says which two gradients have elements in common: each would be averaged into the other.
func apart(p *raw.Places, grads []ccl.Buf) error {
	if i, j, overlap := p.Overlap(grads); overlap {
		return fmt.Errorf("gradients %d and %d overlap: give what is shared once", i, j)
	}
	return nil
}

func permutation(order []int, n int) bool {
	sorted := slices.Sorted(slices.Values(order))
	for i, x := range sorted {
		if i != x {
			return false
		}
	}
	return len(order) == n
}

// fill makes buckets of the gradients in that order.
func (r *Reducer) fill(order []int) {
	r.undone = errors.Join(r.undone, r.forget())
	r.buckets = nil
	var b bucket
	limit := r.o.FirstBytes
	flush := func() {
		if len(b.ids) == 0 {
			return
		}
		bufs := r.join(b.ids)
		b.Bucket, b.left = Bucket{Index: len(r.buckets), Bufs: bufs, Op: r.op, Ranks: r.c.Size(), comm: r.c}, len(b.ids)
		b.group = func(g ccl.Queue) error {
			for _, x := range bufs {
				g.AllReduce(x, ccl.InPlace(), r.op)
			}
			return nil
		}
		r.buckets = append(r.buckets, b)
		b, limit = bucket{}, r.o.Bytes
	}
	for _, i := range order {
		if len(b.ids) > 0 && r.grads[i].Type() != r.grads[b.ids[0]].Type() {
			flush()
		}
		r.bucketOf[i] = len(r.buckets)
		b.ids = append(b.ids, i)
		if b.bytes += r.grads[i].Len() * r.grads[i].Type().Size(); b.bytes >= limit {
			flush()
		}
	}
	flush()
}

// forget gives back what the Hook BFloat16On keeps of the buckets.
func (r *Reducer) forget() (err error) {
	for i := range r.buckets {
		if h, ok := r.buckets[i].State.(*halves); ok && h.free != nil {
			err = errors.Join(err, h.free(h.half))
			r.buckets[i].State = nil
		}
	}
	return err
}

// join makes one Buf of gradients that lie side by side, in either direction; after Use of none,
// since what lies where may then differ between ranks, and from step to step.
func (r *Reducer) join(ids []int) (out []ccl.Buf) {
	for _, i := range ids {
		if n := len(out); n > 0 && !r.used {
			if x, ok := out[n-1].Join(r.grads[i]); ok {
				out[n-1] = x
				continue
			}
			if x, ok := r.grads[i].Join(out[n-1]); ok {
				out[n-1] = x
				continue
			}
		}
		out = append(out, r.grads[i])
	}
	return out
}

// Use has the Reducer average these gradients from now on, where each step has others, such as the
// results of a program of XLA's: call it before the first Ready of a step. Their lengths and types
// are those of New. It sends nothing; the first Use must come before the same step on all ranks,
// since from then on each gradient is a call of its own. No two of them may overlap. After an error
// the gradients are those before.
func (r *Reducer) Use(grads []ccl.Buf) error {
	if err := r.between("Use"); err != nil {
		return err
	}
	if len(grads) != len(r.grads) {
		return fmt.Errorf("ddp: Use of %d gradients; New had %d", len(grads), len(r.grads))
	}
	for i, g := range grads {
		if was := r.grads[i]; g.Len() != was.Len() || g.Type() != was.Type() {
			return fmt.Errorf("ddp: Use: gradient %d is %d x %v; New had %d x %v", i, g.Len(), g.Type(), was.Len(), was.Type())
		}
		if _, within := g.Join(g.From(0, 0)); !within {
			return fmt.Errorf("ddp: Use: gradient %d is not a buffer, or was cut out of one beyond its end", i)
		}
	}
	if err := apart(&r.places, grads); err != nil {
		return fmt.Errorf("ddp: Use: %w", err)
	}
	copy(r.grads, grads)
	if !r.used {
		r.used = true
		var order []int
		for i := range r.buckets {
			order = append(order, r.buckets[i].ids...)
		}
		r.fill(order)
		return nil
	}
	for i := range r.buckets {
		b := &r.buckets[i]
		for k, id := range b.ids {
			b.Bufs[k] = grads[id]
		}
		if _, keeps := b.State.(interface{ Kept() }); !keeps {
			b.State = nil
		}
	}
	return nil
}

// Ready says that gradient i is final for this step. When that completes a bucket, and all buckets
// before it are on their way, the bucket is issued; so ranks may become ready in different orders.
// Ready never blocks. A second Ready of one gradient in one step aborts the Comm: this rank has
// lost count, and the others would wait for what it takes for done.
func (r *Reducer) Ready(i int) error {
	switch {
	case r.closed:
		return errClosed
	case i < 0 || i >= len(r.grads):
		return r.misused(fmt.Errorf("ddp: Ready of gradient %d; the gradients are 0 to %d", i, len(r.grads)-1))
	case r.ready[i] && r.c.Err() != nil: // the step before has not ended
		return fmt.Errorf("ddp: %w", r.c.Err())
	case r.ready[i]:
		return r.misused(fmt.Errorf("ddp: gradient %d is Ready twice in one step", i))
	}
	if r.ready[i] = true; r.seen != nil {
		r.seen = append(r.seen, i)
	}
	r.buckets[r.bucketOf[i]].left--
	for ; r.next < len(r.buckets) && r.buckets[r.next].left == 0; r.next++ {
		r.issue(r.next)
	}
	return nil
}

func (r *Reducer) issue(i int) {
	b := &r.buckets[i]
	s := ccl.Stream(r.host)
	if r.o.Stream != nil {
		s = r.o.Stream(i)
	} else {
		r.host.Do(r.clock.on)
	}
	b.Stream, b.Queue = s, r.c.On(s)
	switch {
	case r.o.Hook != nil:
		b.work = r.o.Hook(&b.Bucket)
	case len(b.Bufs) == 1:
		b.work = b.Queue.AllReduce(b.Bufs[0], ccl.InPlace(), r.op)
	default:
		b.work = b.Queue.Group(b.group)
	}
	if r.o.Stream == nil {
		b.timed = r.host.Do(r.clock.off)
	}
}

// Wait returns when all gradients are averaged, and starts the next step. If some gradient never became ready it fails,
// naming them, and aborts the Comm with that, so that the others hear it at once: unused parameters must be zeroed and
// made Ready. If ctx ends first the step goes on: Wait again, or Close, which aborts the Comm.
func (r *Reducer) Wait(ctx context.Context) error {
	if r.closed {
		return errClosed
	}
	err := r.wait(ctx)
	r.told = err != nil && ctx != nil && ctx.Err() == nil
	return err
}

func (r *Reducer) wait(ctx context.Context) error {
	if r.next != len(r.buckets) {
		var never []int
		for i, ok := range r.ready {
			if !ok {
				never = append(never, i)
			}
		}
		return r.misused(fmt.Errorf("ddp: gradients %d never became Ready in this step", never))
	}
	began := time.Now()
	r.stats.Bytes = 0
	for i := range r.buckets {
		b := &r.buckets[i]
		err := b.work.Wait(ctx)
		if err == nil {
			err = b.timed.Wait(ctx)
		}
		if err == nil && b.Behind != nil {
			err = b.Behind(ctx)
		}
		if err != nil {
			if e := r.c.Err(); e != nil {
				err = e
			}
			return fmt.Errorf("ddp: bucket %d: %w", i, err)
		}
		b.left = len(b.ids)
		r.stats.Bytes += int64(b.bytes)
	}
	r.stats.Exposed = time.Since(began)
	r.stats.Comm, r.clock.spent = r.clock.spent, 0
	clear(r.ready)
	r.next = 0
	if r.seen == nil {
		return nil
	}
	order := r.seen
	r.seen = nil
	if err := ccl.Broadcast(ctx, r.c, order, 0); err != nil {
		return fmt.Errorf("ddp: the order of rank 0: %w", err)
	}
	r.fill(order)
	return nil
}

// All is Ready for every gradient, then Wait: for frameworks whose backward pass is one opaque call.
func (r *Reducer) All(ctx context.Context) error {
	for i := len(r.grads) - 1; i >= 0; i-- {
		if err := r.Ready(i); err != nil {
			return err
		}
	}
	return r.Wait(ctx)
}

// Buckets returns the gradients of each bucket, in the order in which they are issued.
func (r *Reducer) Buckets() (list [][]int) {
	for _, b := range r.buckets {
		list = append(list, slices.Clone(b.ids))
	}
	return list
}

// Stats are the times and bytes of the last step.
func (r *Reducer) Stats() Stats { return r.stats }

var errClosed = errors.New("ddp: the Reducer is closed")

// misused is err, by which this rank has left the order of calls. It fails the Comm with that, so that no rank waits.
func (r *Reducer) misused(err error) error {
	r.c.Abort(err)
	return err
}

// Close ends the Reducer's stream, and waits for the device if its Hook is BFloat16On. The Comm
// stays open; but within a step, whose end the other ranks wait for, it is aborted.
func (r *Reducer) Close() error {
	if i := r.someReady(); i >= 0 && !r.closed && !r.told && !same.Fails(r.c) {
		r.misused(fmt.Errorf("ddp: Close within a step: gradient %d is Ready", i))
	}
	r.closed = true
	err := errors.Join(r.undone, r.forget(), r.host.Close())
	r.undone = nil
	return err
}
