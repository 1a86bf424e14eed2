package quant

import (
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ddp"
)

// Hook returns a Hook of a ddp.Reducer over c that averages float32 gradients in host memory in the
// code k. A bucket whose gradients do not lie side by side is copied. Gradients that are not finite
// become NaN on all ranks, which ddp's Norm and Clip tell of. o.Sum is ddp's.
func Hook(c *ccl.Comm, k Codec, o *Options) ddp.Hook {
	set := Options{}
	if o != nil {
		set = *o
	}
	return func(b *ddp.Bucket) ccl.Work {
		h, _ := b.State.(*hooked)
		if h == nil {
			var err error
			if h, err = newHooked(c, k, set, b); err != nil {
				return b.Queue.Do(func() error { return err })
			}
			b.State = h
		}
		q := c.On(b.Stream)
		if h.flat == nil {
			x, _ := ccl.SliceOf[float32](b.Bufs[0])
			return h.r.Queue(q, x)
		}
		q.Do(h.gather)
		h.r.Queue(q, h.flat)
		return q.Do(h.scatter)
	}
}

// hooked is what Hook keeps of a bucket.
type hooked struct {
	r               *Reducer
	flat            []float32 // all of its gradients; nil if they are one Buf
	gather, scatter func() error
}

// Kept says that this stays of use when a Use gives the bucket other gradients.
func (*hooked) Kept() {}

func newHooked(c *ccl.Comm, k Codec, o Options, b *ddp.Bucket) (*hooked, error) {
	if c == nil || c.Size() != b.Ranks {
		return nil, fmt.Errorf("quant.Hook: the Comm is not that of the ddp.Reducer, which has %d ranks", b.Ranks)
	}
	n := 0
	for _, x := range b.Bufs {
		if _, ok := ccl.SliceOf[float32](x); !ok {
			return nil, fmt.Errorf("quant.Hook is for float32 in host memory, not for %v", x.Type())
		}
		n += x.Len()
	}
	o.Sum = b.Op == ccl.Sum
	r, err := New(c, k, n, &o)
	h := &hooked{r: r}
	if err != nil || len(b.Bufs) == 1 {
		return h, err
	}
	h.flat = make([]float32, n)
	h.gather = func() error { h.each(b, func(part, x []float32) { copy(part, x) }); return nil }
	h.scatter = func() error { h.each(b, func(part, x []float32) { copy(x, part) }); return nil }
	return h, nil
}

// each calls f for each gradient, with its part of flat.
func (h *hooked) each(b *ddp.Bucket, f func(part, x []float32)) {
	at := 0
	for _, g := range b.Bufs {
		x, _ := ccl.SliceOf[float32](g)
		f(h.flat[at:at+len(x)], x)
		at += len(x)
	}
}
