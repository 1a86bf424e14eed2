package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/device"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// Memory is what zero's memory is for XLA. On a CPU it is that memory, and its arithmetic is XLA's:
// a program for each operation and length, which reads memory in place. Its result is copied to
// where it belongs, since XLA writes into memory of its own alone. An operation waits for the
// stream first, and for its program at its end. On a GPU the memory is a device.Memory.
type Memory struct {
	m        *Machine
	dev      *device.Memory  // on a GPU
	ctx      context.Context // of those calls of zero that have none
	programs map[operation]*xla.Program
}

// operation is what a program of a memory depends on.
type operation struct {
	name     string
	n        int
	dst, src ccl.Type
}

// NewMemory returns the memory of a machine; ctx is for those calls of zero that have none.
func NewMemory(ctx context.Context, m *Machine) (*Memory, error) {
	k := &Memory{m: m, ctx: ctx, programs: map[operation]*xla.Program{}}
	if m.stream == nil {
		return k, nil
	}
	var err error
	k.dev, err = device.New(m.device, m.stream)
	return k, err
}

// GPU is the device's memory, nil on a CPU.
func (k *Memory) GPU() *device.Memory { return k.dev }

// Zeros returns what zero.Options takes: GPU, or k itself.
func (k *Memory) Zeros() zero.Memory {
	if k.dev != nil {
		return k.dev
	}
	return k
}

// Close frees what a GPU's memory has, after all models in it.
func (k *Memory) Close() error {
	if k.dev == nil {
		return nil
	}
	return k.dev.Close()
}

// TypeOf is ccl's type in programs.
func TypeOf(t ccl.Type) hlo.Type {
	if t == ccl.TypeBFloat16 {
		return hlo.BF16
	}
	return hlo.F32
}

// Stream is what collectives are issued on.
func (k *Memory) Stream() ccl.Stream { return k.m.Order() }

// Fence has nothing to do: whoever runs a program on this memory waits for it before zero goes on.
func (k *Memory) Fence() error { return nil }

// Alloc returns n zeros where XLA reads in place.
func (k *Memory) Alloc(t ccl.Type, n int) (ccl.Buf, error) {
	switch t {
	case ccl.TypeFloat32:
		return ccl.BufOf(aligned[float32](n)), nil
	case ccl.TypeBFloat16:
		return ccl.BufOf(aligned[ccl.BFloat16](n)), nil
	}
	return ccl.Buf{}, fmt.Errorf("no memory of %v", t)
}

// Free has nothing to do: the memory is Go's.
func (k *Memory) Free(ccl.Buf) error { return nil }

// line is what XLA's CPU reads in place begins at multiples of.
const line = 64

// aligned is n zeros that begin where XLA's CPU reads in place.
func aligned[T any](n int) []T {
	var zero T
	size := int(unsafe.Sizeof(zero))
	s := make([]T, n+line/size)
	at := 0
	for uintptr(unsafe.Pointer(&s[at]))%line != 0 {
		at++
	}
	return s[at : at+n : at+n]
}

// View is b as an argument of programs.
func (k *Memory) View(b ccl.Buf) (*xla.Buffer, error) {
	switch b.Type() {
	case ccl.TypeFloat32:
		return view[float32](k, b)
	case ccl.TypeBFloat16:
		return view[ccl.BFloat16](k, b)
	}
	return nil, fmt.Errorf("no view of %v", b.Type())
}

func view[T zero.Float](k *Memory, b ccl.Buf) (*xla.Buffer, error) {
	if s, ok := ccl.SliceOf[T](b); ok {
		if uintptr(unsafe.Pointer(unsafe.SliceData(s)))%line == 0 {
			return xla.ViewSlice(k.m.client, s, len(s))
		}
		return xla.Put(k.m.client, s, len(s))
	}
	at, ok := b.Addr()
	if !ok {
		return nil, errors.New("this is no memory of the device")
	}
	d, err := cuda.MemOf[T](k.m.device, at, b.Len())
	if err != nil {
		return nil, err
	}
	return xla.ViewMemory[T](k.m.client, d, d.Len())
}

// Take waits for a result of a program, of dst's type, and copies it to dst, or adds it there.
func (k *Memory) Take(ctx context.Context, dst ccl.Buf, src *xla.Buffer, add bool) error {
	if k.dev == nil && !add {
		return k.copyTo(dst, src)
	}
	var from ccl.Buf
	var err error
	if dst.Type() == ccl.TypeBFloat16 {
		from, err = xla.Buf[ccl.BFloat16](src)
	} else {
		from, err = xla.Buf[float32](src)
	}
	switch {
	case err != nil:
		return err
	case k.dev == nil:
		return k.Add(dst, from)
	case add:
		err = k.dev.Add(dst, from)
	default:
		err = k.dev.Convert(dst, from)
	}
	return errors.Join(err, k.m.Settle(ctx)) // XLA's memory is freed when it has been read
}

// copyTo waits for a result, and copies it to dst.
func (k *Memory) copyTo(dst ccl.Buf, src *xla.Buffer) error {
	if s, ok := ccl.SliceOf[float32](dst); ok {
		return xla.Get(src, s)
	}
	if s, ok := ccl.SliceOf[ccl.BFloat16](dst); ok {
		return xla.Get(src, s)
	}
	return fmt.Errorf("no copy to %v", dst.Type())
}

// Apply runs a program on memory, and waits for it.
func (k *Memory) Apply(ctx context.Context, p *xla.Program, bufs []ccl.Buf,
	more ...*xla.Buffer) (out []*xla.Buffer, err error) {
	if err := k.m.Settle(ctx); err != nil {
		return nil, err
	}
	var views []*xla.Buffer
	defer func() { err = errors.Join(err, xla.FreeAll(views...)) }()
	for _, b := range bufs {
		v, err := k.View(b)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	if out, err = p.Run(0, slices.Concat(views, more)...); err != nil {
		return nil, err
	}
	for _, b := range out {
		if err := b.Wait(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// run runs the program of an operation, which has one result.
func (k *Memory) run(o operation, bufs []ccl.Buf, more ...*xla.Buffer) (*xla.Buffer, error) {
	p := k.programs[o]
	if p == nil {
		var err error
		if p, err = k.m.Own(fmt.Sprintf("%s_%d", o.name, o.n), o.write); err != nil {
			return nil, err
		}
		k.programs[o] = p
	}
	out, err := k.Apply(k.ctx, p, bufs, more...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// write writes the program of an operation; 16-bit elements are computed as float32 and rounded once.
func (o operation) write(f *hlo.Func) []*hlo.Value {
	wide := func(t ccl.Type) *hlo.Value { return f.Arg(TypeOf(t), o.n).As(hlo.F32) }
	x := wide(o.dst)
	switch o.name {
	case "add":
		x = x.Add(wide(o.src))
	case "scale":
		x = x.Mul(f.Arg(hlo.F32))
	case "divide":
		x = x.Div(f.Arg(hlo.F32))
	case "squares":
		x = x.As(hlo.F64)
		return []*hlo.Value{x.Mul(x).SumAll()}
	case "convert": // whose argument is the source
		return []*hlo.Value{x.As(TypeOf(o.src))}
	}
	return []*hlo.Value{x.As(TypeOf(o.dst))}
}

// change writes the result of an operation on dst to it.
func (k *Memory) change(name string, dst ccl.Buf, src ccl.Type, bufs []ccl.Buf, more ...*xla.Buffer) error {
	if dst.Len() == 0 {
		return nil
	}
	out, err := k.run(operation{name, dst.Len(), bufs[0].Type(), src}, bufs, more...)
	if err != nil {
		return err
	}
	return errors.Join(k.copyTo(dst, out), out.Free())
}

// Zero clears dst.
func (k *Memory) Zero(dst ccl.Buf) error {
	return k.bytes(dst, dst.Len()*dst.Type().Size(), func(b []byte) { clear(b) })
}

// Add computes dst += src.
func (k *Memory) Add(dst, src ccl.Buf) error {
	return k.change("add", dst, src.Type(), []ccl.Buf{dst, src})
}

// Scale computes dst *= by.
func (k *Memory) Scale(dst ccl.Buf, by float64) error { return k.scalar("scale", dst, by) }

// Divide computes dst /= n.
func (k *Memory) Divide(dst ccl.Buf, n int) error { return k.scalar("divide", dst, float64(n)) }

func (k *Memory) scalar(name string, dst ccl.Buf, x float64) error {
	s, err := xla.Put(k.m.client, []float32{float32(x)})
	if err != nil {
		return err
	}
	return errors.Join(k.change(name, dst, dst.Type(), []ccl.Buf{dst}, s), s.Free())
}

// Convert computes dst = src.
func (k *Memory) Convert(dst, src ccl.Buf) error {
	return k.change("convert", dst, dst.Type(), []ccl.Buf{src})
}

// SumSquares adds up squares in float64.
func (k *Memory) SumSquares(src ccl.Buf) (float64, error) {
	if src.Len() == 0 {
		return 0, nil
	}
	out, err := k.run(operation{"squares", src.Len(), src.Type(), src.Type()}, []ccl.Buf{src})
	if err != nil {
		return 0, err
	}
	x := []float64{0}
	err = errors.Join(xla.Get(out, x), out.Free())
	return x[0], err
}

// Get copies src to memory of the host.
func (k *Memory) Get(dst []byte, src ccl.Buf) error {
	return k.bytes(src, len(dst), func(b []byte) { copy(dst, b) })
}

// Put copies memory of the host to dst.
func (k *Memory) Put(dst ccl.Buf, src []byte) error {
	return k.bytes(dst, len(src), func(b []byte) { copy(b, src) })
}

// bytes does something with b, which has n bytes, once the stream has come so far.
func (k *Memory) bytes(b ccl.Buf, n int, do func(b []byte)) error {
	if err := k.m.Settle(k.ctx); err != nil {
		return err
	}
	at := unsafe.Pointer(nil)
	if s, ok := ccl.SliceOf[float32](b); ok {
		at = unsafe.Pointer(unsafe.SliceData(s))
	} else if s, ok := ccl.SliceOf[ccl.BFloat16](b); ok {
		at = unsafe.Pointer(unsafe.SliceData(s))
	} else {
		return errors.New("this is no memory of the host")
	}
	if has := b.Len() * b.Type().Size(); has != n {
		return fmt.Errorf("a copy between %d bytes and %d", has, n)
	}
	do(unsafe.Slice((*byte)(at), n))
	return nil
}
