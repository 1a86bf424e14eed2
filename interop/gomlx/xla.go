//go:build xla && cgo

package gomlx

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/gomlx/go-xla/pkg/pjrt"
	"github.com/gomlx/gomlx/backends/xla"
	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/tensors"
	mlctx "github.com/gomlx/gomlx/pkg/ml/context"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/train/ddp"
)

// XLA says how gradients are averaged in the memory of gomlx's backend "xla".
type XLA struct {
	// View copies the gradients side by side into memory of the communication library, averages them
	// there in few large calls, and gives the optimizer XLA's views of that memory. Else each is
	// averaged where XLA has it.
	View bool
	// Stream is where the calls on a GPU run, of the device that XLA has. Nil: XLA's device is the CPU.
	Stream *cuda.Stream
	// Device is the device of Stream.
	Device cuda.Device
}

// OnXLA averages gradients in the memory of gomlx's backend "xla", all of Float32, with no copy to
// the host and back. It comes before the first training step, on all ranks alike. go-xla waits for
// the end of each graph, so gradients are complete when they are averaged. The Comm's engine must
// reach the memory: NCCL that of a GPU.
func (o *Optimizer) OnXLA(x XLA) error {
	if o.params != nil {
		return o.failed(errors.New("gomlx: OnXLA after the first training step"))
	}
	o.exchange = &onXLA{XLA: x}
	return nil
}

// onXLA is an exchange in XLA's memory.
type onXLA struct {
	XLA
	all     ccl.Buf // View's memory
	host    []float32
	offsets []int  // of the gradients in it, and its end
	free    func() // lets go of it, on a device
	views   []any  // of it, tensors
	reducer *ddp.Reducer
}

// aligned is what views begin at multiples of, in elements: XLA's own alignment.
const aligned = 256 / 4

// gradient is a gradient in XLA's memory.
type gradient struct {
	buffer *pjrt.Buffer
	tensor *tensors.Tensor
	at     unsafe.Pointer
	n      int
}

func find(o *Optimizer, v *mlctx.Variable) (g gradient, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("gomlx: OnXLA: %s: %w", v.ScopeAndName(), err)
		}
	}()
	if v.Shape().DType != dtypes.Float32 {
		return g, fmt.Errorf("it is of %s; gradients in XLA's memory are of Float32", v.Shape())
	}
	g.n = v.Shape().Size()
	if g.tensor, err = v.Value(); err != nil {
		return g, err
	}
	if !g.tensor.IsOnDevice(0) {
		return g, errors.New("it is not on device 0 of the backend")
	}
	b, err := g.tensor.Buffer(o.backend, 0)
	if err != nil {
		return g, err
	}
	var ok bool
	if g.buffer, ok = b.(*pjrt.Buffer); !ok {
		return g, fmt.Errorf("it is a %T: the backend must be gomlx's \"xla\"", b)
	}
	g.at, err = g.buffer.UnsafePointer()
	return g, err
}

// changed drops copies of a tensor on the host, which are of before.
func changed(t *tensors.Tensor) {
	if t.HasLocal() {
		t.FinalizeLocal()
	}
}

func (x *onXLA) place() int {
	if x.View {
		return 2
	}
	return 1
}

func (x *onXLA) average(ctx context.Context, o *Optimizer) ([]any, error) {
	if x.View {
		return x.views, x.averageViews(ctx, o)
	}
	var list []gradient
	var bufs []ccl.Buf
	for _, v := range o.flat.vars {
		g, err := find(o, v)
		if err != nil {
			return nil, o.failed(err)
		}
		b := ccl.BufOf(unsafe.Slice((*float32)(g.at), g.n))
		if x.Stream != nil {
			m, err := cuda.MemOf[float32](x.Device, uintptr(g.at), g.n)
			if err != nil {
				return nil, o.failed(err)
			}
			b = ccl.BufOfMemory[float32](m)
		}
		list, bufs = append(list, g), append(bufs, b)
	}
	var on ccl.Stream = ccl.Now
	if x.Stream != nil {
		on = x.Stream
	}
	err := o.c.On(on).Group(func(q ccl.Queue) error {
		for _, b := range bufs {
			q.AllReduce(b, ccl.InPlace(), ccl.Avg)
		}
		return nil
	}).Wait(ctx)
	if err != nil {
		return nil, fmt.Errorf("gomlx: OnXLA: %w", err)
	}
	for _, g := range list {
		changed(g.tensor)
	}
	return nil, nil
}

// begin makes View's memory, the Reducer of it, and XLA's views. It is collective.
func (x *onXLA) begin(ctx context.Context, o *Optimizer) error {
	n := 0
	for _, v := range o.flat.vars {
		x.offsets = append(x.offsets, n)
		n += (v.Shape().Size() + aligned - 1) / aligned * aligned
	}
	x.offsets = append(x.offsets, n)
	var base unsafe.Pointer
	options := &ddp.Options{}
	if x.Stream == nil {
		var err error
		if x.host, err = ccl.MakeSlice[float32](ctx, o.c, n); err != nil {
			return o.failed(fmt.Errorf("gomlx: OnXLA: %w", err))
		}
		base, x.all = unsafe.Pointer(unsafe.SliceData(x.host)), ccl.BufOf(x.host)
	} else {
		m, err := ccl.MakeDevice[float32](ctx, o.c, n)
		if err != nil {
			return o.failed(fmt.Errorf("gomlx: OnXLA: %w", err))
		}
		x.free = func() { ccl.FreeDevice(m) }
		at, _ := m.Ptr()
		base, x.all = *(*unsafe.Pointer)(unsafe.Pointer(&at)), ccl.BufOfMemory(m)
		all, err := cuda.MemOf[float32](x.Device, at, n)
		if err == nil {
			err = all.Set(0) // what lies between the gradients
		}
		if err != nil {
			return o.failed(fmt.Errorf("gomlx: OnXLA: %w", err))
		}
		options.Stream = func(int) ccl.Stream { return x.Stream }
	}
	var bufs []ccl.Buf
	for i, v := range o.flat.vars {
		g, err := find(o, v)
		if err != nil {
			return o.failed(err)
		}
		bufs = append(bufs, x.all.From(x.offsets[i], x.offsets[i+1])) // side by side, so that a bucket is one call
		view, err := x.view(o, g, unsafe.Add(base, 4*x.offsets[i]), v)
		if err != nil {
			return o.failed(fmt.Errorf("gomlx: OnXLA: a view of %s: %w", v.ScopeAndName(), err))
		}
		x.views = append(x.views, view)
	}
	var err error
	if x.reducer, err = ddp.New(ctx, o.c, bufs, options); err != nil {
		return fmt.Errorf("gomlx: OnXLA: %w", err)
	}
	return nil
}

// view is XLA's view of memory at an address, as v's gradient g has it.
func (x *onXLA) view(o *Optimizer, g gradient, at unsafe.Pointer, v *mlctx.Variable) (*tensors.Tensor, error) {
	device, err := g.buffer.Device()
	if err != nil {
		return nil, err
	}
	b, err := g.buffer.Client().CreateViewOfDeviceBuffer(at, xla.DTypeToXLA(v.Shape().DType), v.Shape().Dimensions, device)
	if err != nil {
		return nil, err
	}
	return tensors.FromBuffer(o.backend, b)
}

func (x *onXLA) averageViews(ctx context.Context, o *Optimizer) error {
	if x.reducer == nil {
		if err := x.begin(ctx, o); err != nil {
			return err
		}
	}
	for i, v := range o.flat.vars {
		g, err := find(o, v)
		if err == nil {
			err = x.copy(x.offsets[i], g)
		}
		if err != nil {
			return o.failed(err)
		}
	}
	if err := x.reducer.All(ctx); err != nil {
		return fmt.Errorf("gomlx: OnXLA: %w", err)
	}
	if x.Stream != nil {
		if err := x.Stream.Synchronize(); err != nil {
			return o.failed(fmt.Errorf("gomlx: OnXLA: %w", err))
		}
	}
	for _, t := range x.views {
		changed(t.(*tensors.Tensor))
	}
	return nil
}

// copy copies a gradient to its place in View's memory.
func (x *onXLA) copy(offset int, g gradient) error {
	if x.Stream == nil {
		copy(x.host[offset:], unsafe.Slice((*float32)(g.at), g.n))
		return nil
	}
	from, err := cuda.MemOf[float32](x.Device, uintptr(g.at), g.n)
	if err != nil {
		return err
	}
	at, _ := x.all.From(offset, offset+g.n).Addr()
	to, err := cuda.MemOf[float32](x.Device, at, g.n)
	if err != nil {
		return err
	}
	return to.CopyOn(x.Stream, from)
}

// close ends the exchange. The views must not be used any more.
func (x *onXLA) close() error {
	var err error
	if x.reducer != nil {
		err = x.reducer.Close()
	}
	for _, t := range x.views {
		err = errors.Join(err, t.(*tensors.Tensor).FinalizeAll())
	}
	ccl.FreeSlice(x.host)
	if x.free != nil {
		x.free()
	}
	return err
}
