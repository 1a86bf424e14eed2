// Package paged moves what of a zero.Model is on an offload.Disk: shards into the memory that they
// are gathered in, gradients from the memory that they are reduced into, and all of it by buckets
// through an update.
package paged

import (
	"context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/vec"
	"github.com/goccl/goccl/train/offload"
)

// Model is what a Disk has of a model. A nil Model has nothing.
type Model struct {
	D *offload.Disk
	// All says that parameters and gradients are on the Disk as well: stage 3.
	All bool
	// Params, Grads and Masters are the types of elements.
	Params, Grads, Masters ccl.Type
	// Hold is memory for gradients that are reduced, in turns: they go from there to the disk.
	Hold [2]ccl.Buf
	// By is what the gradients on the disk are scaled by before an update.
	By float64

	writes [2]*offload.Op // of Hold; the goroutine of the stream has them
	units  []unit
}

// unit is what the Disk has of one. What is in memory has no column.
type unit struct {
	n                   int // elements
	shard, grad, master offload.Column
	states              []offload.Column
	squares             []float64
}

// Far reports whether parameters and gradients are on a Disk.
func (m *Model) Far() bool { return m != nil && m.All }

// Lay adds a unit of n elements. One that is frozen has parameters alone.
func (m *Model) Lay(n int, frozen bool) {
	u := unit{n: n}
	if m.All {
		u.shard = m.D.Lay(m.Params, n)
	}
	if u.master = u.shard; !frozen {
		if m.All {
			u.grad = m.D.Lay(m.Grads, n)
		}
		if m.narrows() {
			u.master = m.D.Lay(m.Masters, n)
		}
		for range m.D.States() {
			u.states = append(u.states, m.D.Lay(m.Masters, n))
		}
	}
	m.units = append(m.units, u)
}

// ScaleBy has the next update scale the gradients that are on the Disk, a bucket at a time.
func (m *Model) ScaleBy(by float64) {
	if m != nil {
		m.By = by
	}
}

// Closing says that the memory of the model is to be given back. end waits for what uses it, and an error
// of end says that the disk may use it for ever.
func (m *Model) Closing() (end func() error) {
	if m == nil {
		return func() error { return nil }
	}
	over := m.D.Closing()
	return func() error {
		_ = m.D.Flush(context.Background())
		return over()
	}
}

// Leave gives the Disk back, for another model: this one was not made.
func (m *Model) Leave() error {
	if m == nil {
		return nil
	}
	return m.D.Take(nil)
}

// narrows reports whether masters are others than parameters.
func (m *Model) narrows() bool { return m.Params != m.Masters }

// Master is the master copy of unit i, if that is on the Disk.
func (m *Model) Master(i int) (c offload.Column) {
	if m != nil {
		c = m.units[i].master
	}
	return c
}

// State is state k of unit i, if there is one.
func (m *Model) State(i, k int) (c offload.Column) {
	if m != nil && k < len(m.units[i].states) {
		c = m.units[i].states[k]
	}
	return c
}

// Fetch reads the shard of unit i into dst, in the order of s. That begins at once if what used dst is done.
func (m *Model) Fetch(s *ccl.HostStream, i int, dst ccl.Buf, before ccl.Work) {
	c := m.units[i].shard
	var op *offload.Op
	if done, _ := before.Test(); done {
		op = c.Read(dst)
	}
	s.Do(func() error {
		if op == nil {
			op = c.Read(dst)
		}
		return m.D.Wait(context.Background(), op)
	})
}

// Free returns the memory of Hold that the gradients of unit i are to be reduced into. From then on,
// in the order of s, it has those of the micro batches before, unless these are the first.
func (m *Model) Free(s *ccl.HostStream, i, hold int, first bool) ccl.Buf {
	c, dst := m.units[i].grad, m.Hold[hold].From(0, m.units[i].n)
	s.Do(func() error {
		switch {
		case !first:
			return m.D.Wait(context.Background(), c.Read(dst)) // which is behind the write of what was there
		case m.writes[hold] == nil:
			return nil
		}
		return m.D.Wait(context.Background(), m.writes[hold])
	})
	return dst
}

// Span is elements Lo to Hi of a unit's shard.
type Span struct{ Lo, Hi int }

// Keep divides the gradients of unit i, which are in Hold, by a number, sums the squares of spans, and
// begins to write the gradients, in the order of s.
func (m *Model) Keep(s *ccl.HostStream, i, hold, by int, spans []Span) {
	u := &m.units[i]
	src := m.Hold[hold].From(0, u.n)
	s.Do(func() error {
		if by > 1 {
			vec.Divide(src, by)
		}
		u.squares = u.squares[:0]
		for _, x := range spans {
			u.squares = append(u.squares, vec.SumSquares(src.From(x.Lo, x.Hi)))
		}
		m.writes[hold] = u.grad.Write(src)
		return nil
	})
}

// Squares adds the sums of the last Keep of each unit to sums.
func (m *Model) Squares(sums []float64) []float64 {
	for i := range m.units {
		sums = append(sums, m.units[i].squares...)
	}
	return sums
}

// Turn is the update of a unit.
type Turn struct {
	Unit int
	// Master, Grad and Shard are what of the unit is in memory.
	Master, Grad, Shard ccl.Buf
	// Spans are updated.
	Spans []Span
}

// Update makes turns, until next returns one of no unit, -1, or an error. do updates elements lo to hi of
// a span, and offload.State is about these meanwhile.
func (m *Model) Update(ctx context.Context, next func() (Turn, error),
	do func(unit, span, lo, hi int, w, g ccl.Buf) error) error {
	var own []ccl.Buf
	turns := map[int][]Span{} // of the units whose buckets are under way, and before
	defer m.D.Show(nil)
	return m.D.Each(ctx, func() (*offload.Stretch, error) {
		t, err := next()
		if err != nil || t.Unit < 0 {
			return nil, err
		}
		turns[t.Unit] = t.Spans
		return m.stretch(&t), nil
	}, func(s *offload.Stretch, lo, hi int, of []ccl.Buf) error {
		w, g := of[0], m.scaled(of[0].Type(), of[1])
		for k, x := range turns[s.Unit] {
			a, b := max(x.Lo, lo), min(x.Hi, hi)
			if a >= b {
				continue
			}
			own = own[:0]
			for _, s := range of[2 : 2+len(m.units[s.Unit].states)] {
				own = append(own, s.From(a-lo, b-lo))
			}
			m.D.Show(own)
			if err := do(s.Unit, k, a, b, w.From(a-lo, b-lo), g.From(a-lo, b-lo)); err != nil {
				return err
			}
		}
		if m.narrows() {
			vec.Convert(of[len(of)-1], w)
		}
		return nil
	})
}

// scaled is the gradients of a bucket as the update takes them: scaled, and of type t.
func (m *Model) scaled(t ccl.Type, g ccl.Buf) ccl.Buf {
	if m.All && m.By != 1 {
		vec.Scale(g, m.By)
	}
	if g.Type() == t {
		return g
	}
	wide := m.D.Memory(t).From(0, g.Len())
	vec.Convert(wide, g)
	return wide
}

// stretch is what the update of a unit goes over: masters, gradients, states, and parameters where these
// are others than the masters.
func (m *Model) stretch(t *Turn) *offload.Stretch {
	u := &m.units[t.Unit]
	arrays := []offload.Array{{Of: u.master, Mem: t.Master, In: true, Out: true}, {Of: u.grad, Mem: t.Grad, In: true}}
	for _, s := range u.states {
		arrays = append(arrays, offload.Array{Of: s, In: true, Out: true})
	}
	if m.narrows() {
		arrays = append(arrays, offload.Array{Of: u.shard, Mem: t.Shard, Out: true})
	}
	return &offload.Stretch{Unit: t.Unit, N: u.n, Arrays: arrays}
}

// Narrow brings the masters of unit i into its parameters, in memory or on the Disk.
func (m *Model) Narrow(ctx context.Context, i int, shard ccl.Buf) error {
	if m == nil || !m.narrows() || m.units[i].master == m.units[i].shard { // they are the same
		return nil
	}
	u := &m.units[i]
	next := &offload.Stretch{N: u.n,
		Arrays: []offload.Array{{Of: u.master, In: true}, {Of: u.shard, Mem: shard, Out: true}}}
	return m.D.Each(ctx, func() (s *offload.Stretch, err error) {
		s, next = next, nil
		return s, nil
	}, func(_ *offload.Stretch, _, _ int, of []ccl.Buf) error {
		vec.Convert(of[1], of[0])
		return nil
	})
}
