package main

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/zero"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// memory is what zero's memory is for XLA. On a CPU it is that memory, and its arithmetic is XLA's: a program for each operation and
// length, which reads memory in place. Its result is copied to where it belongs, since XLA writes into memory of its own
// alone. An operation waits for the stream first, and for its program at its end. On a GPU the memory is a device.Memory.
type memory struct {
	m        *machine
	ctx      context.Context // of those calls of zero that have none
	programs map[operation]*xla.Program
	held     map[uintptr]interface{ Free() error } // device memory, by address
}

// operation is what a program of a memory depends on.
type operation struct {
	name     string
	n        int
	dst, src ccl.Type
}

func newMemory(m *machine) *memory {
	return &memory{m: m, ctx: context.Background(), programs: map[operation]*xla.Program{}, held: map[uintptr]interface{ Free() error }{}}
}

// typeOf is ccl's type in programs.
func typeOf(t ccl.Type) hlo.Type {
	switch t {
	case ccl.TypeBFloat16:
		return hlo.BF16
	case ccl.TypeFloat64:
		return hlo.F64
	}
	return hlo.F32
}

func (k *memory) Stream() ccl.Stream { return k.m.order() }

// Fence has nothing to do: whoever runs a program on this memory waits for it before zero goes on.
func (k *memory) Fence() error { return nil }

func (k *memory) Alloc(t ccl.Type, n int) (ccl.Buf, error) {
	switch t {
	case ccl.TypeFloat32:
		return alloc[float32](k, n)
	case ccl.TypeBFloat16:
		return alloc[ccl.BFloat16](k, n)
	}
	return ccl.Buf{}, fmt.Errorf("no memory of %v", t)
}

func alloc[T zero.Float](k *memory, n int) (ccl.Buf, error) {
	if k.m.stream == nil {
		return ccl.BufOf(aligned[T](n)), nil
	}
	if n == 0 {
		return ccl.BufOfMemory[T](nil), nil
	}
	d, err := cuda.Alloc[T](k.m.device, n)
	if err != nil {
		return ccl.Buf{}, err
	}
	at, _ := d.Ptr()
	k.held[at] = d
	return ccl.BufOfMemory[T](d), d.Set(0)
}

// aligned is n zeros that begin where XLA's CPU reads in place.
func aligned[T any](n int) []T {
	const line = 64
	var zero T
	size := int(unsafe.Sizeof(zero))
	s := make([]T, n+line/size)
	at := 0
	for uintptr(unsafe.Pointer(&s[at]))%line != 0 {
		at++
	}
	return s[at : at+n : at+n]
}

func (k *memory) Free(b ccl.Buf) error {
	at, ok := b.Addr()
	if !ok || k.held[at] == nil {
		return nil
	}
	d := k.held[at]
	delete(k.held, at)
	return d.Free()
}

// view is b as an argument of programs.
func (k *memory) view(b ccl.Buf) (*xla.Buffer, error) {
	switch b.Type() {
	case ccl.TypeFloat32:
		return view[float32](k, b)
	case ccl.TypeBFloat16:
		return view[ccl.BFloat16](k, b)
	}
	return nil, fmt.Errorf("no view of %v", b.Type())
}

func view[T zero.Float](k *memory, b ccl.Buf) (*xla.Buffer, error) {
	if s, ok := ccl.SliceOf[T](b); ok {
		if k.m.stream == nil && uintptr(unsafe.Pointer(unsafe.SliceData(s)))%64 == 0 {
			return xla.ViewSlice(k.m.client, s, len(s))
		}
		return xla.Put(k.m.client, s, len(s))
	}
	d, err := deviceMemory[T](k, b)
	if err != nil {
		return nil, err
	}
	return xla.ViewMemory[T](k.m.client, d, d.Len())
}

func deviceMemory[T zero.Float](k *memory, b ccl.Buf) (*cuda.Mem[T], error) {
	at, ok := b.Addr()
	if !ok {
		return nil, errors.New("this is no memory of the device")
	}
	return cuda.MemOf[T](k.m.device, at, b.Len())
}

// copyTo copies a result to dst, and waits.
func (k *memory) copyTo(ctx context.Context, dst ccl.Buf, src *xla.Buffer) error {
	switch dst.Type() {
	case ccl.TypeFloat32:
		return copyTo[float32](ctx, k, dst, src)
	case ccl.TypeBFloat16:
		return copyTo[ccl.BFloat16](ctx, k, dst, src)
	}
	return fmt.Errorf("no copy to %v", dst.Type())
}

func copyTo[T zero.Float](ctx context.Context, k *memory, dst ccl.Buf, src *xla.Buffer) error {
	if s, ok := ccl.SliceOf[T](dst); ok {
		from, err := xla.Slice[T](src)
		copy(s, from)
		return err
	}
	to, err := deviceMemory[T](k, dst)
	if err != nil {
		return err
	}
	m, err := xla.MemoryOf[T](src)
	if err != nil {
		return err
	}
	at, _ := m.Ptr()
	from, err := cuda.MemOf[T](k.m.device, at, m.Len())
	if err == nil {
		err = to.CopyOn(k.m.stream, from)
	}
	return errors.Join(err, k.m.stream.Wait(ctx))
}

// take copies the gradients of a unit to zero's memory, or adds them there.
func (k *memory) take(ctx context.Context, dst ccl.Buf, g *xla.Buffer, add bool) error {
	if !add {
		return k.copyTo(ctx, dst, g)
	}
	out, err := k.run(operation{"add", dst.Len(), dst.Type(), dst.Type()}, []ccl.Buf{dst}, g)
	if err != nil {
		return err
	}
	return errors.Join(k.copyTo(ctx, dst, out), out.Free())
}

// apply runs a program on donated buffers and on memory, and waits for it.
func (k *memory) apply(ctx context.Context, p *xla.Program, donated []*xla.Buffer, bufs []ccl.Buf, more ...*xla.Buffer) (out []*xla.Buffer, err error) {
	if err := k.m.settle(ctx); err != nil {
		return nil, err
	}
	var views []*xla.Buffer
	defer func() { err = errors.Join(err, xla.FreeAll(views...)) }()
	for _, b := range bufs {
		v, err := k.view(b)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	in := append(append(append([]*xla.Buffer{}, donated...), views...), more...)
	if out, err = p.Run(len(donated), in...); err != nil {
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
func (k *memory) run(o operation, bufs []ccl.Buf, more ...*xla.Buffer) (*xla.Buffer, error) {
	p := k.programs[o]
	if p == nil {
		var err error
		if p, err = k.m.own(fmt.Sprintf("%s_%d", o.name, o.n), o.write); err != nil {
			return nil, err
		}
		k.programs[o] = p
	}
	out, err := k.apply(k.ctx, p, nil, bufs, more...)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// write writes the program of an operation; 16-bit elements are computed as float32 and rounded once.
func (o operation) write(f *hlo.Func) []value {
	wide := func(t ccl.Type) value { return f.Arg(typeOf(t), o.n).As(hlo.F32) }
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
		return []value{x.Mul(x).SumAll()}
	case "convert": // whose argument is the source
		return []value{x.As(typeOf(o.src))}
	}
	return []value{x.As(typeOf(o.dst))}
}

// change writes the result of an operation on dst to it.
func (k *memory) change(name string, dst ccl.Buf, src ccl.Type, bufs []ccl.Buf, more ...*xla.Buffer) error {
	if dst.Len() == 0 {
		return nil
	}
	out, err := k.run(operation{name, dst.Len(), bufs[0].Type(), src}, bufs, more...)
	if err != nil {
		return err
	}
	return errors.Join(k.copyTo(k.ctx, dst, out), out.Free())
}

func (k *memory) Zero(dst ccl.Buf) error {
	if err := k.m.settle(k.ctx); err != nil || dst.Len() == 0 {
		return err
	}
	switch dst.Type() {
	case ccl.TypeFloat32:
		return zeroed[float32](k, dst)
	case ccl.TypeBFloat16:
		return zeroed[ccl.BFloat16](k, dst)
	}
	return fmt.Errorf("no memory of %v", dst.Type())
}

func zeroed[T zero.Float](k *memory, dst ccl.Buf) error {
	if s, ok := ccl.SliceOf[T](dst); ok {
		clear(s)
		return nil
	}
	d, err := deviceMemory[T](k, dst)
	if err != nil {
		return err
	}
	return d.Set(0)
}

func (k *memory) Add(dst, src ccl.Buf) error {
	return k.change("add", dst, src.Type(), []ccl.Buf{dst, src})
}

func (k *memory) Scale(dst ccl.Buf, by float64) error { return k.scalar("scale", dst, by) }

func (k *memory) Divide(dst ccl.Buf, n int) error { return k.scalar("divide", dst, float64(n)) }

func (k *memory) scalar(name string, dst ccl.Buf, x float64) error {
	s, err := xla.Put(k.m.client, []float32{float32(x)})
	if err != nil {
		return err
	}
	return errors.Join(k.change(name, dst, dst.Type(), []ccl.Buf{dst}, s), s.Free())
}

func (k *memory) Convert(dst, src ccl.Buf) error {
	return k.change("convert", dst, dst.Type(), []ccl.Buf{src})
}

func (k *memory) SumSquares(src ccl.Buf) (float64, error) {
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
