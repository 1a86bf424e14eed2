package zero

import (
	"errors"
	"fmt"
	"math"
	"slices"

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
		u := unit[P]{lens: slices.Clone(lens), slot: -1, gslot: -1}
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
	far := m.disk.Far()
	if stage < 3 {
		params = alloc(tp, total*N, &m.bytes.Params)
	} else {
		if !far {
			params = alloc(tp, total, &m.bytes.Params)
		}
		for range m.o.Ahead + 1 {
			m.slabs = append(m.slabs, slab{buf: alloc(tp, most*N, &m.bytes.Buffers), unit: -1})
		}
	}
	switch {
	case m.off != nil:
		m.bytes.Host = m.off.Make(trained*m.owned, widest*m.owned)
		master = ccl.BufOf(m.off.All)
	case tm != tp && m.disk == nil:
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
	if far {
		for s := range m.disk.Hold {
			m.disk.Hold[s] = alloc(gtype, widest, &m.bytes.Buffers)
		}
	} else if stage >= 2 || m.reduce != tp {
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
	if gtype != tm && m.disk == nil {
		m.grad = alloc(tm, widest*m.owned, &m.bytes.Buffers)
	}
	if m.disk != nil {
		m.disk.Grads = gtype
		for i := range m.units {
			m.disk.Lay(m.owned*m.units[i].k, m.units[i].frozen)
		}
		m.bytes.Disk = m.o.Disk.Stats().Size
		errs = append(errs, m.o.Disk.Reserve())
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
			if !far {
				u.shard = params.From(at, at+u.k)
			}
			for _, s := range m.slabs {
				u.view(&u.views, &u.bufs, s.buf)
			}
		}
		at += u.k
		if u.master = u.shard; u.frozen {
			continue
		}
		if m.disk != nil && tm != tp {
			u.master = ccl.Buf{}
		} else if tm != tp || m.off != nil {
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
		if !far && (stage >= 2 || m.reduce != tp) {
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

// poison fills host memory with NaN.
func poison[P Float](b ccl.Buf) {
	var x [1]P
	vec.Convert(ccl.BufOf(x[:]), ccl.BufOf([]float64{math.NaN()}))
	s, _ := ccl.SliceOf[P](b)
	for i := range s {
		s[i] = x[0]
	}
}
