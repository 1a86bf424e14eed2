package outer

import (
	"context"
	"fmt"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
	"github.com/goccl/goccl/train/quant"
)

// On gives an Outer its Comm: at the beginning, and after a Shrink, a Grow or a Replace. It is collective,
// and compares the Options and the lengths of units. Ranks whose outer state differs get that of the rank
// that is furthest; of several states as far that of the most ranks, then that of the lowest. If no rank has a
// state yet, all get rank 0's parameters. A rank without a state, such as a newcomer, goes on from
// the outer parameters; the others
// keep their inner steps. An exchange that was under way on all ranks begins again. On may change parameters. After an
// error of ccl, such as another loss, the program gets the next Comm and calls On again.
func (u *Outer) On(ctx context.Context, c *ccl.Comm) error {
	if err := u.settle(ctx); err != nil {
		return err
	}
	if u.head[hasState] == 0 { // the parameters may have been set since New
		for i, x := range u.local {
			copy(u.params[i], x)
		}
	}
	items := []string{fmt.Sprintf("Options %+v", u.o)}
	for i, x := range u.local {
		items = append(items, fmt.Sprintf("unit %d with %d elements", i, len(x)))
	}
	if err := same.Args(ctx, c, "outer", nil, items...); err != nil {
		return err
	}
	if err := u.attach(c); err != nil {
		return err
	}
	all, source, err := u.standings(ctx)
	if err != nil {
		return err
	}
	if err := u.level(ctx, all, source); err != nil {
		return err
	}
	u.loaded = false
	return u.again(ctx, all)
}

// settle ends what is under way on the Comm before, which has failed, or still gives its result.
func (u *Outer) settle(ctx context.Context) error {
	for _, f := range u.fragments {
		if f.done == nil {
			continue
		}
		err := f.done(ctx)
		if ctx.Err() != nil { // it is still under way, and has the memory
			return fmt.Errorf("outer: On: %w", ctx.Err())
		}
		if err == nil && f.head[turn] != 0 {
			_ = u.finish(ctx, f) // what it finds ends it as well, on all ranks; other bits are made the same by On
		}
		f.done = nil
	}
	return nil
}

// attach makes what belongs to a Comm.
func (u *Outer) attach(c *ccl.Comm) error {
	if u.stream != nil {
		_ = u.stream.Close() // whose errors are those of the exchanges
	}
	u.c, u.stream = c, ccl.NewHostStream()
	u.q = c.On(u.stream)
	for _, f := range u.fragments {
		r, err := quant.New(c, u.o.Codec, f.n, &quant.Options{Piece: u.o.Piece, Agreed: true})
		if err != nil {
			return fmt.Errorf("outer: %w", err)
		}
		f.reduce, f.tags = r, r.Tag()
	}
	return nil
}

// standings are the heads of all ranks, each with the hash of its state behind it, and which rank is furthest.
func (u *Outer) standings(ctx context.Context) (all [][]int64, source int, err error) {
	mine := append(slices.Clone(u.head), int64(u.Hash()))
	flat := make([]int64, len(mine)*u.c.Size())
	if err := ccl.AllGather(ctx, u.c, flat, mine); err != nil {
		return nil, 0, fmt.Errorf("outer: On: %w", err)
	}
	far := func(h []int64) (sum int64) {
		for i := heads; i < len(h)-1; i += places {
			sum += h[i+rounds]
		}
		return sum
	}
	all = slices.Collect(slices.Chunk(flat, len(mine)))
	count := map[[3]int64]int{} // of ranks with the same state
	state := func(h []int64) [3]int64 { return [3]int64{h[hasState], far(h), h[hasState] * h[len(h)-1]} }
	for _, h := range all {
		count[state(h)]++
	}
	for r, h := range all {
		a, b := state(h), state(all[source])
		if c := slices.Compare(a[:2], b[:2]); c > 0 || c == 0 && count[a] > count[b] {
			source = r
		}
	}
	return all, source, nil
}

// level gives the ranks that differ the state of the source, and has this one go on from it.
func (u *Outer) level(ctx context.Context, all [][]int64, source int) error {
	me, from := u.c.Rank(), all[source]
	differs := func(h []int64) bool {
		if h[hasState] == 0 || h[len(h)-1] != from[len(h)-1] {
			return true
		}
		for i := heads; i < len(h)-1; i += places {
			if h[i+rounds] != from[i+rounds] {
				return true
			}
		}
		return false
	}
	var got [len(u.flat)][]float32 // apart, since the source may be lost as it sends
	others := 0
	for _, h := range all {
		if differs(h) {
			others++
		}
	}
	err := u.c.On(nil).Group(func(g ccl.Queue) error {
		if differs(from) || others == len(all)-1 { // all but the source, as at the beginning
			for i, x := range u.flat {
				if me != source {
					got[i] = make([]float32, len(x))
					x = got[i]
				}
				g.Broadcast(ccl.BufOf(x), source)
			}
			return nil
		}
		for r, h := range all {
			for i, x := range u.flat {
				switch {
				case r == source || !differs(h):
				case me == source:
					g.Send(ccl.BufOf(x), r)
				case me == r:
					got[i] = make([]float32, len(x))
					g.Recv(ccl.BufOf(got[i]), source)
				}
			}
		}
		return nil
	}).Wait(ctx)
	if err != nil {
		return fmt.Errorf("outer: On: %w", err)
	}
	for i, x := range got {
		copy(u.flat[i], x)
	}
	fresh := u.head[hasState] == 0
	for i, f := range u.fragments {
		now := from[heads+i*places+rounds]
		switch behind := now - f.head[rounds]; {
		case fresh || behind > 1 || behind == 1 && f.head[turn] == 0:
			for k := range f.parts {
				copy(f.parts[k].local, f.parts[k].params)
			}
		case behind == 1: // the exchange had this rank's difference in it
			u.mix(f)
		}
		if behind := now - f.head[rounds]; fresh || behind != 0 {
			f.head[turn], f.head[due], f.head[rounds] = 0, 0, now
			clear(f.others)
		}
	}
	for _, h := range all {
		u.head[turns] = max(u.head[turns], h[turns])
	}
	return nil
}

// again begins anew what was under way on all ranks, by the standings before they were made level, and drops the rest.
func (u *Outer) again(ctx context.Context, all [][]int64) error {
	now := int64(0)
	for _, h := range all {
		now = max(now, h[inner])
	}
	u.head[hasState], u.head[inner] = 1, now
	for i, f := range u.fragments {
		at := heads + i*places
		same := !slices.ContainsFunc(all, func(h []int64) bool {
			return h[at+turn] != all[0][at+turn] || h[at+rounds] != all[0][at+rounds]
		})
		if !same {
			f.head[turn], f.head[due] = 0, 0
		}
	}
	for _, f := range u.underWay() { // due in the step in which it was: before its next turn, on all ranks
		u.issue(f)
		if u.o.Delay == 0 {
			if err := u.finish(ctx, f); err != nil {
				return err
			}
		}
	}
	return nil
}
