package zero

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/paged"
)

// Grads returns where to add the gradients of unit i: zeros, or at stages 0 and 1, where M is no
// wider than P, what earlier micro batches of the step have added. It is valid until Reduce.
func (m *Model[P, M]) Grads(ctx context.Context, i int) ([][]P, error) {
	slot, err := m.grads(ctx, i)
	if err != nil {
		return nil, err
	}
	return m.units[i].gviews[slot], nil
}

// GradBufs is Grads in the Memory of Options.
func (m *Model[P, M]) GradBufs(ctx context.Context, i int) ([]ccl.Buf, error) {
	slot, err := m.grads(ctx, i)
	if err != nil {
		return nil, err
	}
	return m.units[i].gbufs[slot], nil
}

func (m *Model[P, M]) grads(ctx context.Context, i int) (slot int, err error) {
	if err := m.usable("Grads", i); err != nil {
		return 0, m.misused(err)
	}
	u := &m.units[i]
	switch {
	case u.frozen:
		return 0, m.misused(fmt.Errorf("zero: Grads of unit %d, which is frozen and has none", i))
	case u.micro >= m.micro:
		return 0, m.misused(fmt.Errorf("zero: Grads of unit %d, which was already reduced %d times in this step", i, u.micro))
	case m.o.Stage < 2 || u.gslot >= 0:
		return max(u.gslot, 0), nil
	}
	s := -1
	for k, g := range m.gslabs { // of the free ones that which was reduced first: it is the next to be done
		if g.unit < 0 && (s < 0 || g.turn < m.gslabs[s].turn) {
			s = k
		}
	}
	if s < 0 {
		return 0, m.misused(tooMany("Grads", i, m.gslabs))
	}
	g := &m.gslabs[s]
	if err := m.wait(ctx, g.busy, i, "reducing the gradients before"); err != nil {
		return 0, err
	}
	g.unit, g.busy, u.gslot = i, ccl.Work{}, s
	u.grads = g.buf.From(0, u.k*m.c.Size())
	if err := m.near.Zero(u.grads); err != nil {
		return 0, m.misused(fmt.Errorf("zero: unit %d: %w", i, err))
	}
	return s, nil
}

// Short makes the step under way one of fewer micro batches than Options.Micro, as the last step of
// an epoch may be. All ranks call it alike, before they reduce any unit in the step.
func (m *Model[P, M]) Short(micro int) error {
	switch {
	case m.closed:
		return errClosed
	case m.misuse != nil:
		return m.misuse
	case micro < 1 || micro > m.o.Micro:
		return m.misused(fmt.Errorf("zero: Short: %d micro batches; a step of this model has 1 to %d", micro, m.o.Micro))
	}
	for i := range m.units {
		if m.units[i].micro > 0 {
			return m.misused(fmt.Errorf("zero: Short: unit %d was already reduced in this step", i))
		}
	}
	m.micro = micro
	return nil
}

// Reduce says that the gradients of unit i are final for this micro batch, and starts averaging them. It never waits.
func (m *Model[P, M]) Reduce(i int) error {
	if err := m.usable("Reduce", i); err != nil {
		return m.misused(err)
	}
	u := &m.units[i]
	switch {
	case u.frozen:
		return m.misused(fmt.Errorf("zero: Reduce of unit %d, which is frozen and has no gradients", i))
	case u.micro >= m.micro:
		return m.misused(fmt.Errorf("zero: unit %d is reduced %d times in a step of %d micro batches", i, u.micro+1, m.micro))
	case m.o.Stage >= 2 && u.gslot < 0:
		return m.misused(fmt.Errorf("zero: Reduce of unit %d before its Grads", i))
	}
	u.micro++
	last := u.micro == m.micro
	if m.o.Stage < 2 && !last && !m.accumulates {
		return nil
	}
	if err := m.mem.Fence(); err != nil {
		return m.misused(fmt.Errorf("zero: unit %d: Fence: %w", i, err))
	}
	if m.o.Stage < 2 && m.accumulates {
		if err := m.accumulate(u, last); err != nil {
			return m.misused(fmt.Errorf("zero: unit %d: %w", i, err))
		}
		if !last {
			return nil
		}
	}
	if m.disk.Far() {
		u.gshard = m.disk.Free(m.host.S, i, u.gslot, u.micro == 1)
	}
	m.begin()
	w, err := m.average(i)
	if err == nil && m.o.Replicas != nil && last {
		w, err = m.averageReplicas(i)
	}
	if err == nil && m.disk.Far() {
		by, spans := 1, []paged.Span(nil)
		if last && !m.o.Sum {
			by = m.micro
		}
		for k := 0; last && m.checks() && k < len(u.seen[0]); k++ {
			x := &u.seen[0][k]
			spans = append(spans, paged.Span{Lo: x.At, Hi: x.At + x.Hi - x.Lo})
		}
		m.disk.Keep(m.host.S, i, u.gslot, by, spans)
	}
	if err != nil {
		return m.misused(fmt.Errorf("zero: unit %d: %w", i, err))
	}
	u.reduced = m.end(w)
	m.stats.Reduced += int64(u.grads.Len() * m.reduce.Size())
	if m.o.Stage >= 2 {
		m.turn++
		g := &m.gslabs[u.gslot]
		g.busy, g.unit, g.turn = u.reduced, -1, m.turn
		u.grads, u.gslot = ccl.Buf{}, -1
	}
	return nil
}

// accumulate adds the gradients of a micro batch to those before, in M, at stages 0 and 1. After
// the last the average over the micro batches, or with Sum their sum, is in u.sum, and in u.grads
// if that is what is reduced: it is rounded to P once.
func (m *Model[P, M]) accumulate(u *unit[P], last bool) error {
	if u.micro == 1 {
		if err := m.near.Convert(u.sum, u.grads); err != nil {
			return err
		}
	} else {
		wide := m.wide.From(0, u.grads.Len())
		if err := m.near.Convert(wide, u.grads); err != nil {
			return err
		}
		if err := m.near.Add(u.sum, wide); err != nil {
			return err
		}
	}
	if !last || m.reduce == u.sum.Type() {
		if err := m.near.Zero(u.grads); err != nil || !last {
			return err
		}
	}
	if !m.o.Sum {
		if err := m.near.Divide(u.sum, m.micro); err != nil {
			return err
		}
	}
	if m.reduce == u.sum.Type() {
		return nil
	}
	return m.near.Convert(u.grads, u.sum)
}

// average issues what brings the average of the ranks' gradients of unit i into its gshard.
func (m *Model[P, M]) average(i int) (ccl.Work, error) {
	u := &m.units[i]
	src, dst := u.grads, u.gshard
	q := m.queueOf(m.c, i)
	if m.o.Stage == 0 {
		if m.reduce != src.Type() && !m.accumulates { // else it is in dst
			if err := m.mem.Convert(dst, src); err != nil {
				return ccl.Work{}, err
			}
		}
		return q.AllReduce(dst, ccl.InPlace(), m.op), nil
	}
	switch {
	case m.reduce != src.Type() && m.o.Stage == 1 && m.accumulates:
		src = u.sum
	case m.reduce != src.Type():
		wide := m.wide.From(0, src.Len())
		if err := m.mem.Convert(wide, src); err != nil {
			return ccl.Work{}, err
		}
		src = wide
	case m.o.Stage == 1: // dst is a part of src
		return q.ReduceScatter(src, ccl.InPlace(), m.op), nil
	}
	if m.o.Stage >= 2 && (u.micro > 1 || m.reduce != dst.Type()) {
		tmp := m.tmp.From(0, u.k)
		w := q.ReduceScatter(tmp, src, m.op)
		return w, m.add(dst, tmp, u.micro == 1)
	}
	return q.ReduceScatter(dst, src, m.op), nil
}

// add adds src, which may be narrower, to dst; first: dst holds nothing yet.
func (m *Model[P, M]) add(dst, src ccl.Buf, first bool) error {
	switch {
	case first:
		return m.mem.Convert(dst, src)
	case src.Type() != dst.Type():
		wide := m.wideTmp.From(0, src.Len())
		if err := m.mem.Convert(wide, src); err != nil {
			return err
		}
		src = wide
	}
	return m.mem.Add(dst, src)
}

// averageReplicas averages the shard of unit i over Replicas, in the type that gradients are reduced in.
func (m *Model[P, M]) averageReplicas(i int) (ccl.Work, error) {
	u := &m.units[i]
	q := m.queueOf(m.o.Replicas, i)
	if u.gshard.Type() == m.reduce {
		return q.AllReduce(u.gshard, ccl.InPlace(), m.op), nil
	}
	tmp := m.tmp.From(0, u.k)
	if err := m.mem.Convert(tmp, u.gshard); err != nil {
		return ccl.Work{}, err
	}
	w := q.AllReduce(tmp, ccl.InPlace(), m.op)
	return w, m.mem.Convert(u.gshard, tmp)
}
