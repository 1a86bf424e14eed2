package ddp

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/vec"
)

// Bucket is gradients that are reduced in one go. It stays the same from step to step, but for the second, after which
// buckets follow the order of the first.
type Bucket struct {
	// Index is its place among the buckets of a step.
	Index int
	// Bufs are its gradients. What lies side by side in memory is one Buf.
	Bufs []ccl.Buf
	// Op is Avg, or Sum with Options.Sum, and Ranks over how many.
	Op    ccl.Op
	Ranks int
	// Stream is what the bucket is reduced on, and Queue that of the Reducer's Comm on it.
	Stream ccl.Stream
	Queue  ccl.Queue
	// State is the Hook's own, kept as long as the Bucket; after a Use it is nil, unless it has a method Kept().
	State any
	// Behind is set by a Hook that issues work behind the call whose Work it returns: it waits for that.
	Behind func(ctx context.Context) error

	comm *ccl.Comm
}

// Hook is PyTorch's communication hook: it issues what reduces b, and does not block. The Work that it returns is that
// of the last call.
type Hook func(b *Bucket) ccl.Work

// refuse is the Work of a bucket that cannot be reduced, on any rank.
func (b *Bucket) refuse(format string, args ...any) ccl.Work {
	err := fmt.Errorf(format, args...)
	return b.Queue.Do(func() error { return err })
}

// BFloat16 is the Hook that sends float32 gradients rounded to bfloat16: half the bytes, in a copy that it keeps. It is
// for host memory; BFloat16On is for a device's.
func BFloat16(b *Bucket) ccl.Work {
	h, _ := b.State.(*halves)
	if h == nil {
		n := 0
		for _, x := range b.Bufs {
			if _, ok := ccl.SliceOf[float32](x); !ok {
				return b.refuse("ddp.BFloat16 is for float32 in host memory, not for %v", x.Type())
			}
			n += x.Len()
		}
		h = &halves{full: b.Bufs, half: ccl.BufOf(make([]ccl.BFloat16, n))}
		convert := func(dst, src ccl.Buf) error { vec.Convert(dst, src); return nil }
		h.narrow = func() error { return h.convert(convert, true) }
		h.widen = func() error { return h.convert(convert, false) }
		b.State = h
	}
	b.Queue.Do(h.narrow)
	b.Queue.AllReduce(h.half, ccl.InPlace(), b.Op)
	return b.Queue.Do(h.widen)
}

// Converter is memory of a device that can convert: a device.Memory.
type Converter interface {
	Stream() ccl.Stream
	Alloc(t ccl.Type, n int) (ccl.Buf, error)
	Free(b ccl.Buf) error
	Convert(dst, src ccl.Buf) error
}

// BFloat16On is BFloat16 for float32 gradients on a device. Options.Stream must be that of m, in
// whose order the gradients are rounded, reduced and widened; the program has m's stream wait for
// what computes them. Close frees its copies.
func BFloat16On(m Converter) Hook {
	return func(b *Bucket) ccl.Work {
		h, _ := b.State.(*halves)
		if h == nil {
			n := 0
			for _, x := range b.Bufs {
				if _, ok := x.Addr(); !ok && x.Len() > 0 || x.Type() != ccl.TypeFloat32 {
					return b.fail(fmt.Errorf("ddp.BFloat16On is for float32 on a device, not for %v or host memory", x.Type()))
				}
				n += x.Len()
			}
			if s := m.Stream(); s != b.Stream {
				return b.fail(errors.New("ddp.BFloat16On: Options.Stream is another stream than the memory's"))
			}
			half, err := m.Alloc(ccl.TypeBFloat16, n)
			if err != nil {
				return b.fail(fmt.Errorf("ddp.BFloat16On: %w", err))
			}
			h = &halves{full: b.Bufs, half: half, free: m.Free}
			b.State = h
			if s, ok := b.Stream.(interface{ Wait(context.Context) error }); ok {
				b.Behind = s.Wait
			}
		}
		if err := h.convert(m.Convert, true); err != nil {
			return b.fail(fmt.Errorf("ddp.BFloat16On: %w", err))
		}
		w := b.Queue.AllReduce(h.half, ccl.InPlace(), b.Op)
		if err := h.convert(m.Convert, false); err != nil {
			return b.fail(fmt.Errorf("ddp.BFloat16On: %w", err))
		}
		return w
	}
}

// fail is the Work of a bucket that this rank cannot reduce. It fails the Comm: the other ranks may.
func (b *Bucket) fail(err error) ccl.Work {
	b.comm.Abort(err)
	s := ccl.NewHostStream()
	defer s.Close()
	return s.Do(func() error { return err })
}

// halves is what BFloat16 keeps of a bucket.
type halves struct {
	free          func(ccl.Buf) error // on a device
	full          []ccl.Buf
	half          ccl.Buf // of all of them
	narrow, widen func() error
}

// Kept says that this stays of use when a Use gives the bucket other gradients: it has the slice of them.
func (*halves) Kept() {}

// convert has f round all to half, or widen all of half.
func (h *halves) convert(f func(dst, src ccl.Buf) error, narrow bool) error {
	at := 0
	for _, full := range h.full {
		dst, src := full, h.half.From(at, at+full.Len())
		if narrow {
			dst, src = src, dst
		}
		if err := f(dst, src); err != nil {
			return err
		}
		at += full.Len()
	}
	return nil
}

// Hierarchical is a Hook that reduce-scatters over inner, all-reduces each part over outer, and gathers over inner: the
// Comms of the two dimensions of a mesh of all ranks, such as the ranks of a host and those at one place in all hosts.
// An average is that of averages, so its last bits may differ from those of an all-reduce.
func Hierarchical(inner, outer *ccl.Comm) Hook {
	return func(b *Bucket) ccl.Work {
		h, _ := b.State.(*levels)
		if h == nil {
			if inner.Size()*outer.Size() != b.Ranks {
				return b.refuse("ddp.Hierarchical: %d by %d ranks are not the %d ranks of the Reducer", inner.Size(),
					outer.Size(), b.Ranks)
			}
			h = newLevels(b, inner.Size(), inner.Rank())
			b.State = h
		}
		q := inner.On(b.Stream)
		q.Group(h.scatter)
		outer.On(b.Stream).Group(h.reduce)
		return q.Group(h.gather)
	}
}

// levels is what Hierarchical keeps of a bucket: its calls.
type levels struct {
	scatter, reduce, gather func(ccl.Queue) error
}

func newLevels(b *Bucket, n, me int) *levels {
	counts, parts := make([][]int, len(b.Bufs)), make([]ccl.Buf, len(b.Bufs))
	for i, x := range b.Bufs {
		for r := range n {
			lo, hi := x.Len()*r/n, x.Len()*(r+1)/n
			if counts[i] = append(counts[i], hi-lo); r == me {
				parts[i] = x.From(lo, hi)
			}
		}
	}
	return &levels{
		scatter: func(g ccl.Queue) error {
			for i, x := range b.Bufs {
				g.ReduceScatterV(x, ccl.InPlace(), counts[i], b.Op)
			}
			return nil
		},
		reduce: func(g ccl.Queue) error {
			for _, x := range parts {
				g.AllReduce(x, ccl.InPlace(), b.Op)
			}
			return nil
		},
		gather: func(g ccl.Queue) error {
			for i, x := range b.Bufs {
				g.AllGatherV(x, counts[i], ccl.InPlace())
			}
			return nil
		},
	}
}
