package zero

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Grads returns where to add the gradients of unit i: zeros, or at stages 0 and 1 what earlier micro batches of the step
// have added. It is valid until Reduce.
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
		return 0, err
	}
	u := &m.units[i]
	if u.micro >= m.o.Micro {
		return 0, fmt.Errorf("zero: Grads of unit %d, which was already reduced %d times in this step", i, u.micro)
	}
	if m.o.Stage < 2 || u.gslot >= 0 {
		return max(u.gslot, 0), nil
	}
	s := -1
	for k := range m.gslabs { // a free one, best one that nothing reads any more
		if m.gslabs[k].unit >= 0 {
			continue
		}
		if done, _ := m.gslabs[k].busy.Test(); done || s < 0 {
			s = k
		}
	}
	if s < 0 {
		return 0, m.tooMany("Grads", i, m.gslabs)
	}
	g := &m.gslabs[s]
	if err := m.wait(ctx, g.busy, i, "reducing the gradients before"); err != nil {
		return 0, err
	}
	g.unit, g.busy, u.gslot = i, ccl.Work{}, s
	u.grads = g.buf.From(0, u.k*m.c.Size())
	if err := m.near.Zero(u.grads); err != nil {
		return 0, fmt.Errorf("zero: unit %d: %w", i, err)
	}
	return s, nil
}

// Reduce says that the gradients of unit i are final for this micro batch, and starts averaging them. It never blocks.
func (m *Model[P, M]) Reduce(i int) error {
	if err := m.usable("Reduce", i); err != nil {
		return err
	}
	u := &m.units[i]
	switch {
	case u.micro >= m.o.Micro:
		return fmt.Errorf("zero: unit %d is reduced %d times in a step of %d micro batches", i, u.micro+1, m.o.Micro)
	case m.o.Stage >= 2 && u.gslot < 0:
		return fmt.Errorf("zero: Reduce of unit %d before its Grads", i)
	}
	if u.micro++; m.o.Stage < 2 && u.micro < m.o.Micro {
		return nil
	}
	if err := m.mem.Fence(); err != nil {
		return fmt.Errorf("zero: unit %d: Fence: %w", i, err)
	}
	m.begin()
	w, err := m.average(u)
	if err != nil {
		return fmt.Errorf("zero: unit %d: %w", i, err)
	}
	if m.o.Replicas != nil && u.micro == m.o.Micro {
		w = m.queue(m.o.Replicas).AllReduce(u.gshard, ccl.InPlace(), ccl.Avg)
	}
	u.reduced = m.end(w)
	m.stats.Reduced += int64(u.grads.Len() * m.reduce.Size())
	if m.o.Stage >= 2 {
		m.gslabs[u.gslot].busy, m.gslabs[u.gslot].unit = u.reduced, -1
		u.grads, u.gslot = ccl.Buf{}, -1
	}
	return nil
}

// average issues what brings the average of the ranks' gradients of u into its gshard.
func (m *Model[P, M]) average(u *unit[P]) (ccl.Work, error) {
	src, dst := u.grads, u.gshard
	q := m.queue(m.c)
	if m.o.Stage == 0 {
		if m.reduce != src.Type() {
			if err := m.mem.Convert(dst, src); err != nil {
				return ccl.Work{}, err
			}
		}
		return q.AllReduce(dst, ccl.InPlace(), ccl.Avg), nil
	}
	if m.reduce != src.Type() {
		wide := m.wide.From(0, src.Len())
		if err := m.mem.Convert(wide, src); err != nil {
			return ccl.Work{}, err
		}
		src = wide
	} else if m.o.Stage == 1 { // dst is a part of src
		return q.ReduceScatter(src, ccl.InPlace(), ccl.Avg), nil
	}
	if m.o.Stage >= 2 && u.micro > 1 {
		tmp := m.tmp.From(0, u.k)
		w := q.ReduceScatter(tmp, src, ccl.Avg)
		return w, m.mem.Add(dst, tmp)
	}
	return q.ReduceScatter(dst, src, ccl.Avg), nil
}
