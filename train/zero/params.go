package zero

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
)

var errClosed = errors.New("zero: the model is closed")

// usable says what keeps unit i from being used in a call of that name.
func (m *Model[P, M]) usable(call string, i int) error {
	switch {
	case m.closed:
		return errClosed
	case m.misuse != nil:
		return m.misuse
	case i < 0 || i >= len(m.units):
		return fmt.Errorf("zero: %s of unit %d; the units are 0 to %d", call, i, len(m.units)-1)
	}
	return nil
}

// misused is err, by which this rank has left the order of calls. It fails the Comms with that, since the other ranks
// wait for what this one will not do. Only the use of a closed model leaves them alone: they may serve another.
func (m *Model[P, M]) misused(err error) error {
	if m.misuse == nil && !errors.Is(err, errClosed) {
		m.misuse = err
		m.aborted(err)
	}
	return err
}

// failed says what a collective was for, and why it failed: the first failure of its Comm, where there is one.
func (m *Model[P, M]) failed(i int, what string, err error) error {
	if e := m.c.Err(); e != nil {
		err = e
	}
	if errors.Is(err, ccl.ErrMismatch) {
		what += " (Params, Release and Reduce must come in one order on all ranks)"
	}
	return fmt.Errorf("zero: unit %d: %s: %w", i, what, err)
}

// wait waits for a collective of unit i.
func (m *Model[P, M]) wait(ctx context.Context, w ccl.Work, i int, what string) error {
	done, err := w.Test()
	if !done {
		began := time.Now()
		err = w.Wait(ctx)
		m.stats.Exposed += time.Since(began)
	}
	if err != nil {
		return m.failed(i, what, err)
	}
	return nil
}

// queue is where the next collective of c is issued.
func (m *Model[P, M]) queue(c *ccl.Comm) ccl.Queue {
	if m.host != nil && c == m.c {
		return m.host.Q
	}
	return c.On(m.mem.Stream())
}

// queueOf is queue for what moves unit i. Its number has ranks compare the unit, since units may be
// of one size, and how many micro batches the step has, where that is not as usual.
func (m *Model[P, M]) queueOf(c *ccl.Comm, i int) ccl.Queue {
	if m.micro != m.o.Micro {
		i += m.micro * len(m.units)
	}
	return m.queue(c).Numbered(i + 1)
}

// Params returns the parameters of unit i, whole, valid until Release. At stage 3 they are gathered; those of the units
// that follow, as in the step before, are on their way meanwhile. Another order than then costs the overlap only.
//
// All ranks must call Params and Release in one order: what is gathered follows from it. A rank
// whose gathers differ gets ErrMismatch, as do the others, and no parameters.
func (m *Model[P, M]) Params(ctx context.Context, i int) ([][]P, error) {
	slot, err := m.params(ctx, i)
	if err != nil {
		return nil, err
	}
	return m.units[i].views[slot], nil
}

// ParamBufs is Params in the Memory of Options.
func (m *Model[P, M]) ParamBufs(ctx context.Context, i int) ([]ccl.Buf, error) {
	slot, err := m.params(ctx, i)
	if err != nil {
		return nil, err
	}
	return m.units[i].bufs[slot], nil
}

// params makes unit i whole, and returns which of its views is meant. One that fails leaves no
// trace in the order, which is that of all ranks.
func (m *Model[P, M]) params(ctx context.Context, i int) (slot int, err error) {
	if err := m.usable("Params", i); err != nil {
		return 0, m.misused(err)
	}
	u := &m.units[i]
	if m.o.Stage == 3 {
		at, n := m.at, len(m.order)
		defer func() {
			if err != nil {
				m.at, m.order = at, m.order[:n]
			}
		}()
		m.follow(i)
		if u.slot < 0 {
			s := m.freeSlab()
			if s < 0 {
				return 0, m.misused(tooMany("Params", i, m.slabs))
			}
			m.gather(i, s)
		}
		m.prefetch()
	}
	if err := m.wait(ctx, u.gathered, i, "gathering parameters"); err != nil {
		return 0, err
	}
	u.gathered = ccl.Work{}
	u.uses++
	return max(u.slot, 0), nil
}

// passes is how many times over the units a step's order is kept for a micro batch: forward, backward, and as much for
// what recomputes. A program that evaluates for long, or only does that, has no longer one.
const passes = 4

// follow finds the place of unit i in the order of the step before.
func (m *Model[P, M]) follow(i int) {
	if len(m.order) < passes*len(m.units)*m.o.Micro {
		m.order = append(m.order, i)
	}
	switch n := len(m.before); {
	case m.at < n && m.before[m.at] == i:
		m.at++
	case n > 0 && m.before[0] == i: // another forward pass
		m.at = 1
	default:
		k := slices.Index(m.before[min(m.at, n):], i)
		if m.at += k + 1; k < 0 {
			m.at = n
		}
	}
}

// prefetch gathers what comes next, as far as there is room.
func (m *Model[P, M]) prefetch() {
	for _, next := range m.before[m.at:min(m.at+m.o.Ahead, len(m.before))] {
		if m.units[next].slot >= 0 {
			continue
		}
		s := slices.IndexFunc(m.slabs, func(s slab) bool { return s.unit < 0 })
		if s < 0 {
			return
		}
		m.gather(next, s)
	}
}

// freeSlab is a slab for a unit that is needed now: a free one, or one that was filled for nothing.
func (m *Model[P, M]) freeSlab() int {
	if s := slices.IndexFunc(m.slabs, func(s slab) bool { return s.unit < 0 }); s >= 0 {
		return s
	}
	s := slices.IndexFunc(m.slabs, func(s slab) bool { return m.units[s.unit].uses == 0 })
	if s >= 0 {
		m.drop(&m.units[m.slabs[s].unit])
	}
	return s
}

// gather begins to make unit i whole in slab s.
func (m *Model[P, M]) gather(i, s int) {
	u := &m.units[i]
	m.slabs[s].unit, u.slot = i, s
	u.whole = m.slabs[s].buf.From(0, u.k*m.c.Size())
	if err := m.mem.Fence(); err != nil {
		m.misused(fmt.Errorf("zero: unit %d: Fence: %w", i, err))
	}
	src := u.shard
	if m.disk.Far() {
		m.disk.Fetch(m.host.S, i, u.whole.From(m.part*u.k, (m.part+1)*u.k), m.slabs[s].busy)
		src = ccl.InPlace()
	}
	m.begin()
	u.gathered = m.end(m.queueOf(m.c, i).AllGather(u.whole, src))
	m.slabs[s].busy = u.gathered
	m.stats.Gathered += int64(u.whole.Len() * u.whole.Type().Size())
}

// drop gives u's slab back.
func (m *Model[P, M]) drop(u *unit[P]) {
	if u.slot >= 0 {
		m.slabs[u.slot].unit = -1
		u.slot, u.whole = -1, ccl.Buf{}
	}
}

func tooMany(call string, i int, slabs []slab) error {
	var in []int
	for _, s := range slabs {
		in = append(in, s.unit)
	}
	slices.Sort(in)
	if call == "Grads" {
		return fmt.Errorf("zero: Grads of unit %d: Reduce one of units %d first; stages 2 and 3 hold at most two", i, in)
	}
	return fmt.Errorf("zero: Params of unit %d: units %d are in use; Release one of them, or raise Options.Ahead", i, in)
}

// Release ends the use of Params(i): the slices must not be used any more. At stage 3 their memory
// then serves other units, so a use would read those of another layer; Options.Poison makes it read
// NaN. A Release without Params aborts the Comm, and is the error of every call that follows.
func (m *Model[P, M]) Release(i int) {
	if err := m.usable("Release", i); err != nil {
		m.misused(err)
		return
	}
	u := &m.units[i]
	if u.uses == 0 {
		m.misused(fmt.Errorf("zero: Release of unit %d, which is not in use", i))
		return
	}
	u.uses--
	if m.o.Stage < 3 || u.uses > 0 || m.at < len(m.before) && m.before[m.at] == i { // or it is what comes next
		return
	}
	if m.o.Poison {
		poison[P](u.whole)
	}
	m.drop(u)
	m.prefetch()
}

// begin and end stand around a collective. On the host they take its time, and end returns when that was done, which is
// when the collective was; after a failure nothing is done.
func (m *Model[P, M]) begin() {
	if m.host != nil {
		m.host.S.Do(m.started)
	}
}

func (m *Model[P, M]) end(w ccl.Work) ccl.Work {
	if m.host != nil {
		return m.host.S.Do(m.stopped)
	}
	return w
}
