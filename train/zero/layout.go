package zero

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/vec"
)

// allocate lays the units out: what the ranks need of each kind is one piece of memory.
func (m *Model[P, M]) allocate(units [][]int) error {
	N, stage := m.c.Size(), m.o.Stage
	total, most := 0, 0     // elements of parts
	trained, widest := 0, 0 // of those that are updated
	pad := align / ccl.TypeOf[P]().Size()
	for i, lens := range units {
		u := unit[P]{lens: lens, slot: -1, gslot: -1}
		u.still, u.frozen = m.o.still(i, len(lens))
		n := 0
		for _, l := range lens {
			n += l
		}
		u.k = ((n+N-1)/N + pad - 1) &^ (pad - 1)
		u.pieces = pieces(i, lens, m.part*u.k, m.owned*u.k)
		for p := range m.owned {
			u.seen = append(u.seen, nil)
			for _, x := range pieces(i, lens, (m.part+p)*u.k, u.k) {
				if !u.still[x.Param] {
					x.At += p * u.k
					u.seen[p] = append(u.seen[p], watched{x, m.o.NormOf == nil || m.o.NormOf(i, x.Param)})
				}
			}
		}
		total, most = total+u.k, max(most, u.k)
		if !u.frozen {
			trained, widest = trained+u.k, max(widest, u.k)
		}
		m.units = append(m.units, u)
	}
	var errs []error
	alloc := func(t ccl.Type, n int, sum *int64) ccl.Buf {
		b, err := m.mem.Alloc(t, n)
		if errs = append(errs, err); err == nil {
			m.all = append(m.all, b)
			*sum += int64(n) * int64(t.Size())
		}
		return b
	}
	tp, tm := ccl.TypeOf[P](), ccl.TypeOf[M]()
	var params, grads, master, gshards, sums ccl.Buf
	if stage < 3 {
		params = alloc(tp, total*N, &m.bytes.Params)
	} else {
		params = alloc(tp, total, &m.bytes.Params)
		for range m.o.Ahead + 1 {
			m.slabs = append(m.slabs, slab{buf: alloc(tp, most*N, &m.bytes.Buffers), unit: -1})
		}
	}
	switch {
	case m.off != nil:
		m.bytes.Host = m.off.allocate(trained*m.owned, widest*m.owned)
		master = ccl.BufOf(m.off.masters)
	case tm != tp:
		master = alloc(tm, trained*m.owned, &m.bytes.Master)
	}
	if stage < 2 {
		grads = alloc(tp, trained*N, &m.bytes.Grads)
	} else {
		for range 2 {
			m.gslabs = append(m.gslabs, slab{buf: alloc(tp, widest*N, &m.bytes.Buffers), unit: -1})
		}
	}
	gtype := m.reduce // of averaged gradients
	if stage >= 2 && m.accumulates {
		gtype = tm
	}
	if stage >= 2 || m.reduce != tp {
		gshards = alloc(gtype, trained*m.owned, &m.bytes.Grads)
	}
	if stage < 2 && m.accumulates && (stage == 1 || m.reduce == tp) { // else they add up in gshards
		sums = alloc(tm, trained*N, &m.bytes.Grads)
	}
	if stage >= 2 && m.o.Micro > 1 {
		m.tmp = alloc(m.reduce, widest, &m.bytes.Buffers)
	}
	if gtype != m.reduce {
		m.wideTmp = alloc(tm, widest, &m.bytes.Buffers)
	}
	if stage >= 1 && m.reduce != tp || stage < 2 && m.accumulates {
		m.wide = alloc(tm, widest*N, &m.bytes.Buffers)
	}
	if gtype != tm {
		m.grad = alloc(tm, widest*m.owned, &m.bytes.Buffers)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("no memory for the model: %w", err)
	}
	for i, at, gat := 0, 0, 0; i < len(m.units); i++ { // at, gat: elements of parts before, and of those that are updated
		u := &m.units[i]
		own := m.owned * u.k
		if stage < 3 {
			u.whole = params.From(at*N, (at+u.k)*N)
			u.shard = u.whole.From(m.part*u.k, m.part*u.k+own)
			u.view(&u.views, &u.bufs, u.whole)
		} else {
			u.shard = params.From(at, at+u.k)
			for _, s := range m.slabs {
				u.view(&u.views, &u.bufs, s.buf)
			}
		}
		at += u.k
		if u.master = u.shard; u.frozen {
			continue
		}
		if tm != tp || m.off != nil {
			u.master = master.From(gat*m.owned, (gat+u.k)*m.owned)
		}
		if stage < 2 {
			u.grads = grads.From(gat*N, (gat+u.k)*N)
			u.gshard = u.grads.From(m.part*u.k, m.part*u.k+own)
			u.view(&u.gviews, &u.gbufs, u.grads)
		} else {
			for _, s := range m.gslabs {
				u.view(&u.gviews, &u.gbufs, s.buf)
			}
		}
		if stage >= 2 || m.reduce != tp {
			u.gshard = gshards.From(gat*m.owned, (gat+u.k)*m.owned)
		}
		switch {
		case stage >= 2 || !m.accumulates:
		case stage == 1 || m.reduce == tp:
			u.sum = sums.From(gat*N, (gat+u.k)*N)
		default:
			u.sum = u.gshard
		}
		gat += u.k
	}
	return nil
}

// pieces are the parts of parameters among the n elements from lo of unit i.
func pieces(i int, lens []int, lo, n int) (list []Piece) {
	at := 0
	for j, l := range lens {
		if a, b := max(at, lo), min(at+l, lo+n); a < b {
			list = append(list, Piece{Unit: i, Param: j, Lo: a - at, Hi: b - at, At: a - lo})
		}
		at += l
	}
	return list
}

// view cuts b, which begins with all of u, into parameters.
func (u *unit[P]) view(views *[][][]P, bufs *[][]ccl.Buf, b ccl.Buf) {
	at := 0
	var v [][]P
	var list []ccl.Buf
	for _, n := range u.lens {
		x := b.From(at, at+n)
		list = append(list, x)
		if s, ok := ccl.SliceOf[P](x); ok {
			v = append(v, s[:n:n])
		}
		at += n
	}
	*views, *bufs = append(*views, v), append(*bufs, list)
}

// hostMemory is the host's, in the order of a HostStream. What it is to do waits in a ring, so that
// nothing is allocated.
type hostMemory struct {
	ctx    context.Context // of New
	c      *ccl.Comm
	stream *ccl.HostStream
	q      ccl.Queue
	todo   chan operation
	next   func() error
}

// operation adds src to dst, or converts it.
type operation struct {
	dst, src ccl.Buf
	add      bool
}

func newHostMemory(ctx context.Context, c *ccl.Comm) *hostMemory {
	h := &hostMemory{ctx: ctx, c: c, stream: ccl.NewHostStream(), todo: make(chan operation, 64)}
	h.q = c.On(h.stream)
	h.next = func() error {
		if o := <-h.todo; o.add {
			vec.Add(o.dst, o.src)
		} else {
			vec.Convert(o.dst, o.src)
		}
		return nil
	}
	return h
}

func (h *hostMemory) Stream() ccl.Stream { return h.stream }

func (h *hostMemory) Fence() error { return nil }

func (h *hostMemory) Alloc(t ccl.Type, n int) (ccl.Buf, error) {
	return hostSlices[t].make(h, n)
}

func (h *hostMemory) Free(b ccl.Buf) error {
	hostSlices[b.Type()].free(b)
	return nil
}

// slice makes and frees memory of one type of elements.
type slice struct {
	make func(h *hostMemory, n int) (ccl.Buf, error)
	free func(b ccl.Buf)
}

func sliceOf[T Float]() slice {
	return slice{
		func(h *hostMemory, n int) (ccl.Buf, error) {
			s, err := ccl.MakeSlice[T](h.ctx, h.c, n)
			return ccl.BufOf(s), err
		},
		func(b ccl.Buf) { s, _ := ccl.SliceOf[T](b); ccl.FreeSlice(s) },
	}
}

var hostSlices = map[ccl.Type]slice{ccl.TypeFloat64: sliceOf[float64](), ccl.TypeFloat32: sliceOf[float32](),
	ccl.TypeBFloat16: sliceOf[ccl.BFloat16](), ccl.TypeFloat16: sliceOf[ccl.Float16]()}

func (h *hostMemory) Add(dst, src ccl.Buf) error     { return h.do(operation{dst, src, true}) }
func (h *hostMemory) Convert(dst, src ccl.Buf) error { return h.do(operation{dst, src, false}) }

// do issues o. A stream that has failed runs nothing any more, and the ring stays full: the failure
// is told by what waits.
func (h *hostMemory) do(o operation) error {
	for {
		select {
		case h.todo <- o:
			h.stream.Do(h.next)
			return nil
		default:
			if err := h.stream.Do(nothing).Wait(context.Background()); err != nil {
				return err
			}
		}
	}
}

func nothing() error { return nil }

// What is not done in the order of the stream is done at once.

func (h *hostMemory) Zero(b ccl.Buf) error                  { vec.Zero(b); return nil }
func (h *hostMemory) Scale(b ccl.Buf, by float64) error     { vec.Scale(b, by); return nil }
func (h *hostMemory) Divide(b ccl.Buf, n int) error         { vec.Divide(b, n); return nil }
func (h *hostMemory) SumSquares(b ccl.Buf) (float64, error) { return vec.SumSquares(b), nil }

// now is the host's memory for what no call on the stream uses: all is done at once.
type now struct{ *hostMemory }

func (now) Add(dst, src ccl.Buf) error     { vec.Add(dst, src); return nil }
func (now) Convert(dst, src ccl.Buf) error { vec.Convert(dst, src); return nil }

// poison fills host memory with NaN.
func poison[P Float](b ccl.Buf) {
	nan := []float64{math.NaN()}
	var x [1]P
	vec.Convert(ccl.BufOf(x[:]), ccl.BufOf(nan))
	s, _ := ccl.SliceOf[P](b)
	for i := range s {
		s[i] = x[0]
	}
}
