// Package outer trains with few exchanges, over links that are slow: local SGD, DiLoCo (Douillard et al.
// 2023) and Streaming DiLoCo (Douillard et al. 2025).
//
// Each rank makes inner steps of its own, by any optimizer, on its own parameters. Every H of them
// the ranks average how far they have come, and step the outer parameters by that difference, with
// Nesterov's momentum. All ranks have the same bits of the outer parameters. So each sends in H steps
// what package ddp sends in one.
//
//	u, err := outer.New(params, &outer.Options{Every: 50})
//	err = u.On(ctx, c)                // rank 0's parameters for all
//	for step := range steps {
//		...                           // an inner step on params
//		moved, err := u.Step(ctx)     // moved: it has changed params
//	}
//	moved, err := u.Flush(ctx)        // before u.Params is saved or evaluated
//
// With Fragments the parameters go in parts, each at steps of its own, so that the link is never
// asked for all of them at once. With Delay a part is on its way while that many inner steps are
// made; it is then mixed with what the rank has come to meanwhile. With a Codec it takes 16, 8 or 4
// bits an element (package quant).
//
// The ranks of c may be single ones, or the replicas of a larger layout: give New the memory in
// which a rank keeps its part. Below it ranks of a host or a site keep step by ddp or zero, and c is
// the dimension across the sites of a package mesh. Parameters of ddp are whole on each rank; of
// zero they are the Shards, so the outer state is sharded as well. After a Step that has moved
// them zero needs Loaded.
//
//	m, err := mesh.New(ctx, world, mesh.Dim{Name: "site", Size: sites}, mesh.Dim{Name: "dp"})
//	...                               // zero.New(ctx, m.Comm("dp"), ...)
//	err = u.On(ctx, m.Comm("site"))
//
// # When a rank is lost, or comes
//
// An error of ccl passes through Step. The outer parameters are then those before the exchange, or
// on a rank that heard of its end those after it, and the inner ones are as they were. The
// program gets a new Comm, by Shrink, Grow or Replace, and all its ranks call On: the outer state of the
// rank that is furthest goes to those that differ, and to newcomers. What was under way on
// all ranks begins again; what was not waits for its next turn. No inner step is lost.
//
// # What a rank holds and sends
//
// Beside its parameters a rank holds the outer ones, their momentum, and a vector to exchange; with a
// Delay one more, and two more with Eager. In H steps it sends what a quant.Reducer sends
// for all parameters, and 8 bytes to each other rank for each fragment: a hash of the outer state, by which
// ranks whose bits differ are found. An Outer uses its Comm from goroutines of its own, so the Comm is
// its own: one of Split or of a mesh, or the program's between Flush and Step.
package outer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/quant"
)

// Options must agree on all ranks; On compares them. The zero value of all but Every is DiLoCo's.
type Options struct {
	// Every is how many inner steps lie between two exchanges of a fragment: H.
	Every int
	// Fragments is how many parts the parameters go in, Every/Fragments steps apart: P. 0 is 1.
	Fragments int
	// Stride has fragment i take the units i, i+P, i+2P and so on, as Streaming DiLoCo does. Otherwise
	// fragments are equal lengths of the units behind one another, and cut units.
	Stride bool
	// Delay is how many inner steps are made while an exchange is under way: tau, at most Every.
	Delay int
	// Mix is the share of its own parameters with which a rank goes on after an exchange: alpha, from 0
	// to 1. The rest are the outer ones. With a Delay, .5 keeps half of what the rank has done meanwhile.
	Mix float32
	// Eager, with a Delay and without Mix, has a rank go on from an estimate of the outer step, made of its
	// own difference and of those of the others one exchange before (Kale et al. 2025). When the exchange is
	// done, the estimate's error is taken back, and all of what the rank has done meanwhile is kept.
	Eager bool
	// LR and Momentum are those of the outer step, Nesterov's. An LR of 0 is .7; a Momentum of 0 is then .9, and
	// else none.
	LR, Momentum float64
	// Mean is local SGD: the outer parameters become the mean of those of the ranks.
	Mean bool
	// Codec is what the differences travel as.
	Codec quant.Codec
	// Piece is that of quant.Options.
	Piece int
}

// ErrNotFinite is the cause of an error of Step, on all ranks, where the mean difference of a fragment has a NaN or
// an infinity: of some rank, or because its numbers are too large. The outer parameters are as
// they were, and the exchange is over. A program may go back to Params on all ranks, by Restart.
var ErrNotFinite = errors.New("the mean difference of the ranks is not finite")

// Stats are what an Outer has done since New.
type Stats struct {
	Rounds int           // exchanges of fragments that have moved the outer parameters
	Bytes  int64         // that this rank has sent, without headers
	Waited time.Duration // in Step and Flush, for exchanges
}

// Outer is a rank's outer parameters and their optimizer. One goroutine at a time uses it.
type Outer struct {
	o         Options
	c         *ccl.Comm
	stream    *ccl.HostStream
	q         ccl.Queue
	local     [][]float32 // by unit, as all below
	params    [][]float32 // the outer ones
	moments   [][]float32
	flat      [2][]float32 // the memory of both
	fragments []*fragment
	head      []int64 // what places in it are for has the constants below; then those of each fragment
	stats     Stats
	loaded    bool // there was no On since Loaded
}

// The numbers of an Outer in Outer.head: whether it has a state, the inner steps made, and the exchanges begun.
const (
	hasState = iota
	inner
	turns
	heads
)

// New returns an Outer of the parameters in units, such as the layers of a model, which Step changes
// in place. Nothing is sent: On gives it a Comm, and its state.
func New(units [][]float32, o *Options) (*Outer, error) {
	u := &Outer{local: slices.Clone(units)}
	if o != nil {
		u.o = *o
	}
	u.o.Fragments = max(u.o.Fragments, 1)
	switch h, n := &u.o, len(units); {
	case h.Every < 1:
		return nil, fmt.Errorf("outer: Every is %d inner steps; give at least 1", h.Every)
	case h.Fragments > h.Every:
		return nil, fmt.Errorf("outer: %d Fragments do not fit %d inner steps: there is at most one a step", h.Fragments, h.Every)
	case h.Stride && h.Fragments > n:
		return nil, fmt.Errorf("outer: %d Fragments of %d units, with Stride: give at most as many as there are units", h.Fragments, n)
	case h.Delay < 0 || h.Delay > h.Every:
		return nil, fmt.Errorf("outer: a Delay of %d inner steps; it is from 0 to Every, which is %d", h.Delay, h.Every)
	case !(h.Mix >= 0 && h.Mix <= 1):
		return nil, fmt.Errorf("outer: Mix is %v; it is from 0 to 1", h.Mix)
	case h.Eager && (h.Delay == 0 || h.Mix != 0):
		return nil, fmt.Errorf("outer: Eager with a Delay of %d and Mix of %v: it takes a Delay, and no Mix", h.Delay, h.Mix)
	case !(h.LR >= 0 && h.Momentum >= 0 && h.Momentum < 1) || math.IsInf(h.LR, 0):
		return nil, fmt.Errorf("outer: LR %v and Momentum %v: neither may be negative, and Momentum is less than 1", h.LR, h.Momentum)
	case h.Mean && (h.LR != 0 || h.Momentum != 0):
		return nil, errors.New("outer: Mean has no LR and no Momentum")
	}
	if _, err := quant.Parse(u.o.Codec.String()); err != nil {
		return nil, fmt.Errorf("outer: %v is no codec", u.o.Codec)
	}
	if u.o.Piece < 0 {
		return nil, fmt.Errorf("outer: Piece is %d bytes", u.o.Piece)
	}
	switch {
	case u.o.Mean:
		u.o.LR = 1
	case u.o.LR == 0:
		u.o.LR, u.o.Momentum = .7, cmp.Or(u.o.Momentum, .9)
	}
	total := 0
	for _, x := range units {
		total += len(x)
	}
	for i := range u.flat {
		u.flat[i] = make([]float32, total)
	}
	at := 0
	for _, x := range units {
		end := at + len(x)
		u.params, u.moments = append(u.params, u.flat[0][at:end:end]), append(u.moments, u.flat[1][at:end:end])
		copy(u.flat[0][at:], x)
		at = end
	}
	u.head = make([]int64, heads+u.o.Fragments*places)
	for i := range u.o.Fragments {
		u.fragments = append(u.fragments, u.fragment(i, total))
	}
	return u, nil
}

// Step is called after each inner step. It begins the exchanges whose turn it is, and ends those
// that are due; moved says that it has changed parameters. An error of ccl is followed by On, over
// another Comm. As in any blocking call, the end of ctx in an exchange fails the Comm.
func (u *Outer) Step(ctx context.Context) (moved bool, err error) {
	if err := u.ready(); err != nil {
		return false, err
	}
	u.head[inner]++
	now := u.head[inner]
	for _, f := range u.underWay() {
		if f.head[due] <= now {
			if err := u.finish(ctx, f); err != nil {
				return moved, err
			}
			moved = true
		}
	}
	every, n := int64(u.o.Every), int64(len(u.fragments))
	for i, f := range u.fragments {
		if now < every || (now-int64(i)*every/n)%every != 0 {
			continue
		}
		u.begin(f)
		moved = moved || u.o.Eager
		if u.o.Delay == 0 {
			if err := u.finish(ctx, f); err != nil {
				return moved, err
			}
			moved = true
		}
	}
	return moved, nil
}

// ready is why nothing can be exchanged, or nil.
func (u *Outer) ready() error {
	switch {
	case u.c == nil:
		return errors.New("outer: there is no Comm yet: call On")
	case u.loaded:
		return errors.New("outer: the state was loaded: call On, on all ranks")
	}
	return nil
}

// Flush ends the exchanges that are under way: before the outer parameters are evaluated or saved, and before
// a Grow. All ranks call it after the same inner step.
func (u *Outer) Flush(ctx context.Context) (moved bool, err error) {
	if err := u.ready(); err != nil {
		return false, err
	}
	for _, f := range u.underWay() {
		if err := u.finish(ctx, f); err != nil {
			return moved, err
		}
		moved = true
	}
	return moved, nil
}

// underWay are the fragments that are being exchanged, in the order in which that began.
func (u *Outer) underWay() (list []*fragment) {
	for _, f := range u.fragments {
		if f.head[turn] != 0 {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *fragment) int { return int(a.head[turn] - b.head[turn]) })
	return list
}

// Params returns the outer parameters, by unit: to evaluate and to save, after a Flush. They are the Outer's memory.
func (u *Outer) Params() [][]float32 { return u.params }

// Moments returns the momentum of the outer parameters, by unit: to save beside Params.
func (u *Outer) Moments() [][]float32 { return u.moments }

// Steps returns how many inner steps were made. After an On that is the largest of all ranks.
func (u *Outer) Steps() int { return int(u.head[inner]) }

// Loaded says that Params and Moments were filled, as from a checkpoint that was made after so
// many inner steps. All ranks then call On; until then nothing is exchanged. What was under way is dropped: it has its
// end on the other ranks, so Params and Moments are best filled behind a Flush.
func (u *Outer) Loaded(steps int) {
	clear(u.head)
	u.head[hasState], u.head[inner], u.loaded = 1, int64(steps), true
	for _, f := range u.fragments {
		clear(f.others)
	}
}

// Restart sets the inner parameters to the outer ones. What is under way goes on.
func (u *Outer) Restart() {
	for i, x := range u.local {
		copy(x, u.params[i])
	}
	for _, f := range u.fragments {
		for i := 0; u.o.Eager && i < len(f.parts); i++ {
			copy(f.parts[i].of(f.guess), f.parts[i].params) // from which the rank goes on now
		}
	}
}

// State returns all that an Outer keeps from step to step, for package mirror: outer parameters,
// momentum, what is under way, and how far it is. The inner parameters are the program's. After a
// Restore into it all ranks call On: exchanges that were under way begin again with the same
// differences.
func (u *Outer) State() []ccl.Buf {
	bufs := []ccl.Buf{ccl.BufOf(u.head), ccl.BufOf(u.flat[0]), ccl.BufOf(u.flat[1])}
	if u.o.Delay > 0 {
		for _, f := range u.fragments {
			for _, x := range [][]float32{f.delta, f.others, f.guess} {
				if x != nil {
					bufs = append(bufs, ccl.BufOf(x))
				}
			}
		}
	}
	return bufs
}

// Hash hashes the bits of the outer parameters and their momentum.
func (u *Outer) Hash() uint64 { return ddp.Hash(u.flat[:]...) }

// Same returns an error, on all ranks, that lists the ranks whose outer parameters or momentum have
// other bits than most. It is collective, after a Flush.
func (u *Outer) Same(ctx context.Context) error {
	if err := u.ready(); err != nil {
		return err
	}
	if err := ddp.Same(ctx, u.c, u.Hash()); err != nil {
		return fmt.Errorf("outer: %w", err)
	}
	return nil
}

// Stats returns what was done since New.
func (u *Outer) Stats() Stats { return u.stats }

// Close waits for what is under way, and leaves the Comm open.
func (u *Outer) Close() error {
	if u.stream == nil {
		return nil
	}
	u.c = nil
	return u.stream.Close()
}
