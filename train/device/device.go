// Package device is the memory of an NVIDIA GPU for training: a [zero.Memory], whose arithmetic is
// done by kernels on the device, in the order of one stream. They come as PTX with the program, and
// the driver compiles them: nothing is needed beside it.
//
//	mem, err := device.New(d, s) // a cuda.Device and a cuda.Stream
//	defer mem.Close()
//	m, err := zero.New[ccl.BFloat16, float32](ctx, c, units, &zero.Options{Stage: 1, Memory: mem})
//	...
//	err = m.StepBufs(ctx, func(p zero.Piece, w, g ccl.Buf) error {
//		lo, hi := p.At, p.At+w.Len()
//		return mem.AdamW(h, step, w, g, avg[p.Unit].From(lo, hi), sq[p.Unit].From(lo, hi))
//	})
//
// Add, Scale, Divide, Convert and AdamW give the bits that package zero on the host and package
// optim give, but for the payload of a NaN. SumSquares adds up in an order of its own, which
// follows from the length alone, so it has the same bits on every device. The kernels take float32,
// float64 and bfloat16, wherever an element begins, and need compute capability 7.0.
//
// A program that computes on other streams names them with Follow, and has them wait with Lead
// before they read or write what this package works on. The build tag nccl compiles package cuda
// in; without it New returns its error.
package device

import (
	_ "embed"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/zero"
)

// ptx is what the kernels are compiled to.
//
//go:embed kernels.ptx
var ptx []byte

var _ zero.Memory = (*Memory)(nil)

// Memory is a device's memory and its kernels. Its calls return once the work is issued, except
// Alloc, Get, Put, SumSquares, SumsOfSquares, and Convert from host memory, which wait for it. It
// is used by one goroutine at a time.
type Memory struct {
	d       cuda.Device
	s       *cuda.Stream
	module  *cuda.Module
	k       kernels
	mark    *cuda.Event // in s
	follows []followed

	held map[uintptr]freed // what Alloc has made, by its address
	ends []func() error    // what Close calls besides

	parts   *cuda.Mem[float64]  // of a sum
	weights *cuda.Mem[uint64]   // of rows in a Merge; nil before the first
	sums    *cuda.Mem[float64]  // of one SumsOfSquares
	result  *cuda.Host[float64] // and on the host
	window  [2]chunk            // what Get and Put go through
}

// freed is memory of any type.
type freed interface{ Free() error }

// followed is a stream that Fence waits for.
type followed struct {
	s    *cuda.Stream
	mark *cuda.Event
}

// New returns the Memory of d in the order of s, which stays the caller's.
func New(d cuda.Device, s *cuda.Stream) (*Memory, error) {
	m := &Memory{d: d, s: s, held: map[uintptr]freed{}}
	err := m.open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("device: %w", err), m.Close())
	}
	return m, nil
}

func (m *Memory) open() (err error) {
	if m.s == nil {
		return errors.New("the stream is nil")
	}
	if _, open := m.s.Handle(); !open {
		return errors.New("the stream is closed")
	}
	if m.s.Device() != m.d.Index() {
		return fmt.Errorf("the stream is of device %d, not of %v", m.s.Device(), m.d)
	}
	if m.module, err = cuda.Load(m.d, ptx); err != nil {
		return err
	}
	m.ends = append(m.ends, m.module.Close)
	if err = m.k.find(m.module); err != nil {
		return err
	}
	if m.mark, err = m.d.NewMark(); err != nil {
		return err
	}
	m.ends = append(m.ends, m.mark.Close)
	if m.parts, err = cuda.Alloc[float64](m.d, lanes+wide+narrow); err == nil {
		m.ends = append(m.ends, m.parts.Free)
	}
	return err
}

// Close releases the kernels, and what Alloc has made and nobody has freed. It waits for all work on the device.
func (m *Memory) Close() error {
	var errs []error
	for _, end := range m.ends {
		errs = append(errs, end())
	}
	for _, x := range m.held {
		errs = append(errs, x.Free())
	}
	errs = append(errs, m.freeSums())
	for i := range m.window {
		errs = append(errs, m.window[i].free())
	}
	*m = Memory{d: m.d, s: m.s}
	return errors.Join(errs...)
}

// Stream returns the stream of New, on which collectives of this memory belong.
func (m *Memory) Stream() ccl.Stream { return m.s }

// Follow has Fence wait for these streams, on which the program's own kernels run.
func (m *Memory) Follow(streams ...*cuda.Stream) error {
	for _, s := range streams {
		e, err := m.d.NewMark()
		if err != nil {
			return fmt.Errorf("device: %w", err)
		}
		m.follows, m.ends = append(m.follows, followed{s, e}), append(m.ends, e.Close)
	}
	return nil
}

// Fence makes Stream wait for the work that the streams of Follow have been given so far.
func (m *Memory) Fence() error {
	for _, f := range m.follows {
		if err := order(m.s, f.s, f.mark); err != nil {
			return err
		}
	}
	return nil
}

// Lead makes s wait for the work that was issued to Stream so far, such as zeros of zero's GradBufs.
func (m *Memory) Lead(s *cuda.Stream) error { return order(s, m.s, m.mark) }

// order makes then wait for first.
func order(then, first *cuda.Stream, mark *cuda.Event) error {
	if err := mark.Record(first); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	if err := then.WaitEvent(mark); err != nil {
		return fmt.Errorf("device: %w", err)
	}
	return nil
}

// Alloc returns n zeros of float32, float64 or bfloat16. An error names what was asked for, and how much there is.
func (m *Memory) Alloc(t ccl.Type, n int) (ccl.Buf, error) {
	if m.module == nil {
		return ccl.Buf{}, errClosed
	}
	switch t {
	case ccl.TypeFloat32:
		return alloc[float32](m, n)
	case ccl.TypeFloat64:
		return alloc[float64](m, n)
	case ccl.TypeBFloat16:
		return alloc[ccl.BFloat16](m, n)
	}
	return ccl.Buf{}, fmt.Errorf("device: Alloc of %v: there is float32, float64 and bfloat16", t)
}

func alloc[T zero.Float](m *Memory, n int) (ccl.Buf, error) {
	if n == 0 {
		return ccl.BufOfMemory[T](nil), nil
	}
	x, err := cuda.Alloc[T](m.d, n)
	if err != nil {
		return ccl.Buf{}, fmt.Errorf("device: %w", err)
	}
	if err := x.Set(0); err != nil {
		return ccl.Buf{}, errors.Join(fmt.Errorf("device: %w", err), x.Free())
	}
	at, _ := x.Ptr()
	m.held[at] = x
	return ccl.BufOfMemory[T](x), nil
}

// Free gives back what Alloc has returned. It waits for all work on the device.
func (m *Memory) Free(b ccl.Buf) error {
	if b.Len() == 0 {
		return nil
	}
	at, err := address("Free", b)
	if err != nil {
		return err
	}
	x := m.held[at]
	if x == nil {
		return errors.New("device: Free of memory that Alloc has not made, or of a part of it")
	}
	delete(m.held, at)
	return x.Free()
}

// address is where b begins.
func address(call string, b ccl.Buf) (uintptr, error) {
	at, ok := b.Addr()
	if !ok {
		return 0, fmt.Errorf("device: %s: %d elements of %v are not memory of the device, or were freed", call, b.Len(),
			b.Type())
	}
	return at, nil
}
