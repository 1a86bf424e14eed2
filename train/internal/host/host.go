// Package host is the host's memory as a zero.Memory.
package host

import (
	"context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/vec"
)

// Memory is the host's, in the order of a HostStream. What it is to do waits in a ring, so that
// nothing is allocated.
type Memory struct {
	ctx context.Context // of New
	c   *ccl.Comm
	// S is the stream, and Q the queue of c on it.
	S    *ccl.HostStream
	Q    ccl.Queue
	todo chan operation
	next func() error
}

// operation adds src to dst, or converts it.
type operation struct {
	dst, src ccl.Buf
	add      bool
}

// New makes that of a rank of c. Alloc outlives ctx: it waits for nobody.
func New(ctx context.Context, c *ccl.Comm) *Memory {
	h := &Memory{ctx: context.WithoutCancel(ctx), c: c, S: ccl.NewHostStream(), todo: make(chan operation, 64)}
	h.Q = c.On(h.S)
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

// Stream is S.
func (h *Memory) Stream() ccl.Stream { return h.S }

// Fence does nothing: there are no other streams.
func (h *Memory) Fence() error { return nil }

// Alloc returns n zeros, on which the ranks of a host work in place.
func (h *Memory) Alloc(t ccl.Type, n int) (ccl.Buf, error) {
	return hostSlices[t].make(h, n)
}

// Free gives back what Alloc returned.
func (h *Memory) Free(b ccl.Buf) error {
	hostSlices[b.Type()].free(b)
	return nil
}

// slice makes and frees memory of one type of elements.
type slice struct {
	make func(h *Memory, n int) (ccl.Buf, error)
	free func(b ccl.Buf)
}

func sliceOf[T ccl.Element]() slice {
	return slice{
		func(h *Memory, n int) (ccl.Buf, error) {
			s, err := ccl.MakeSlice[T](h.ctx, h.c, n)
			return ccl.BufOf(s), err
		},
		func(b ccl.Buf) { s, _ := ccl.SliceOf[T](b); ccl.FreeSlice(s) },
	}
}

var hostSlices = map[ccl.Type]slice{ccl.TypeFloat64: sliceOf[float64](), ccl.TypeFloat32: sliceOf[float32](),
	ccl.TypeBFloat16: sliceOf[ccl.BFloat16](), ccl.TypeFloat16: sliceOf[ccl.Float16]()}

// Add computes dst += src.
func (h *Memory) Add(dst, src ccl.Buf) error { return h.do(operation{dst, src, true}) }

// Convert computes dst = src.
func (h *Memory) Convert(dst, src ccl.Buf) error { return h.do(operation{dst, src, false}) }

// do issues o. A stream that has failed runs nothing any more, and the ring stays full: the failure
// is told by what waits.
func (h *Memory) do(o operation) error {
	for {
		select {
		case h.todo <- o:
			h.S.Do(h.next)
			return nil
		default:
			if err := h.S.Do(Nothing).Wait(context.Background()); err != nil {
				return err
			}
		}
	}
}

// Nothing is a function that waits for what was issued before it.
func Nothing() error { return nil }

// What is not done in the order of the stream is done at once.

// Zero computes b = 0.
func (h *Memory) Zero(b ccl.Buf) error { vec.Zero(b); return nil }

// Scale computes b *= by.
func (h *Memory) Scale(b ccl.Buf, by float64) error { vec.Scale(b, by); return nil }

// Divide computes b /= n.
func (h *Memory) Divide(b ccl.Buf, n int) error { vec.Divide(b, n); return nil }

// SumSquares is the sum of the squares of b.
func (h *Memory) SumSquares(b ccl.Buf) (float64, error) { return vec.SumSquares(b), nil }

// Now is the host's memory for what no call on the stream uses: all is done at once.
type Now struct{ *Memory }

// Add computes dst += src.
func (Now) Add(dst, src ccl.Buf) error { vec.Add(dst, src); return nil }

// Convert computes dst = src.
func (Now) Convert(dst, src ccl.Buf) error { vec.Convert(dst, src); return nil }
