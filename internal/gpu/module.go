package gpu

import (
	"fmt"
	"math"
	"strings"
	"unsafe"
)

// programs are what the driver does with modules. Each method is one call into C.
type programs interface {
	load(dev int, image []byte) (module uintptr, log string, c code)
	unload(dev int, module uintptr) code
	// function also returns the sizes of the parameters; nil if the driver does not tell.
	function(dev int, module uintptr, name string) (function uintptr, sizes []int, c code)
	// start takes arrays by value: what goes through an interface by address is allocated.
	start(dev int, stream, function uintptr, dims [6]uint32, shared int, values [maxParams]uint64, n int) code
}

// maxParams is how many parameters a kernel may have.
const maxParams = 64

// Module is code for a device: kernels.
type Module struct {
	*resource
	p programs
}

// Kernel is a function of a Module that runs on the device.
type Kernel struct {
	m     *Module
	f     uintptr
	name  string
	sizes []int // of the parameters; nil: unknown
}

// Dim is a number of blocks or of threads, in up to three dimensions. A Y or Z of 0 is 1.
type Dim struct{ X, Y, Z int }

// Shape says how many threads run a kernel.
type Shape struct {
	Grid   Dim // blocks
	Block  Dim // threads of a block
	Shared int // bytes of shared memory that a block gets besides what the kernel declares
}

// Load compiles an image for d: PTX, as text, or a cubin.
func Load(d Device, image []byte) (*Module, error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	p, err := drv.programs(d.rt)
	if err != nil {
		return nil, err
	}
	if len(image) == 0 {
		return nil, d.rt.errorf("%v: Load of an empty image", d)
	}
	h, log, c := p.load(d.n, image)
	if c != success {
		what := fmt.Sprintf("an image of %d bytes", len(image))
		if log = strings.TrimSpace(log); log != "" {
			what += ": " + log
		}
		return nil, d.rt.driverFailure(c, "cuModuleLoadDataEx", d.n, what)
	}
	return &Module{newResource(d.rt, d.n, "module", "ModuleUnload", h), p}, nil
}

// driverFailure is a failure of a function of the driver, which has the runtime's codes.
func (r *Runtime) driverFailure(c code, call string, dev int, what string) *Error {
	e := r.failure(c, call, dev, what)
	e.Call = call
	return e
}

// Kernel returns the kernel of that name: in C++ one that is extern "C".
func (m *Module) Kernel(name string) (*Kernel, error) {
	if m == nil {
		return nil, errNil
	}
	h, err := m.use()
	if err != nil {
		return nil, err
	}
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, m.rt.errorf("%q is not the name of a kernel", name)
	}
	f, sizes, c := m.p.function(m.dev, h, name)
	if c != success {
		return nil, m.rt.driverFailure(c, "cuModuleGetFunction", m.dev, fmt.Sprintf("kernel %q", name))
	}
	return &Kernel{m, f, name, sizes}, nil
}

// Close releases the module and its kernels. It waits for all work on the device.
func (m *Module) Close() error {
	if m == nil {
		return errNil
	}
	return m.close(func(h uintptr) code { return m.p.unload(m.dev, h) })
}

// Arg is an argument of a kernel.
type Arg struct {
	value uint64 // in its first bytes
	size  uint8
	err   error
}

// Value returns v as an argument. An int and a uint have 8 bytes.
func Value[T Element](v T) Arg {
	a := Arg{size: uint8(unsafe.Sizeof(v))}
	*(*T)(unsafe.Pointer(&a.value)) = v
	return a
}

// Pointer returns the address of memory of the device as an argument, such as that of a ccl.Buf.
func Pointer(addr uintptr) Arg { return Arg{value: uint64(addr), size: 8} }

// Arg returns the address of m as an argument of a kernel. A launch with it after m was freed is an error.
func (m *Mem[T]) Arg() Arg {
	b, err := m.use()
	if err != nil {
		return Arg{err: err}
	}
	p, _ := b.ptr()
	return Pointer(p)
}

// Launch issues k to s, with one argument for each parameter. Memory that it uses must not be freed before it is done.
func (k *Kernel) Launch(s *Stream, how Shape, args ...Arg) error {
	if k == nil {
		return errNil
	}
	if _, err := k.m.use(); err != nil {
		return err
	}
	stream, err := s.use()
	if err != nil {
		return err
	}
	if err := k.m.same(s.resource); err != nil {
		return err
	}
	if s.dev != k.m.dev {
		return k.m.rt.errorf("kernel %s is of %v, and the stream of %v", k.name, Device{k.m.rt, k.m.dev}, Device{s.rt, s.dev})
	}
	var values [maxParams]uint64
	if err := k.fill(&values, args); err != nil {
		return err
	}
	dims, ok := how.dims()
	if !ok {
		return k.m.rt.errorf("kernel %s: a grid of %v blocks of %v threads with %d bytes of shared memory: a grid has 1 to %d blocks in X and up to %d in Y and Z, "+
			"and a block has 1 to %d threads in all", k.name, how.Grid, how.Block, how.Shared, math.MaxInt32, math.MaxUint16, maxThreads)
	}
	if c := k.m.p.start(k.m.dev, stream, k.f, dims, how.Shared, values, len(args)); c != success {
		return k.m.rt.driverFailure(c, "cuLaunchKernel", k.m.dev, "kernel "+k.name)
	}
	return nil
}

// fill checks the arguments against the parameters.
func (k *Kernel) fill(values *[maxParams]uint64, args []Arg) error {
	if k.sizes != nil && len(args) != len(k.sizes) || len(args) > maxParams {
		return k.m.rt.errorf("kernel %s: %d arguments, and it has %d parameters", k.name, len(args), len(k.sizes))
	}
	for i := range args {
		a := &args[i]
		switch {
		case a.err != nil:
			return k.m.rt.errorf("kernel %s: argument %d: %w", k.name, i, a.err)
		case a.size == 0:
			return k.m.rt.errorf("kernel %s: argument %d is the zero Arg: Value, Pointer and Mem.Arg make one", k.name, i)
		case k.sizes != nil && int(a.size) != k.sizes[i]:
			return k.m.rt.errorf("kernel %s: argument %d has %d bytes, and the parameter %d", k.name, i, a.size, k.sizes[i])
		}
		values[i] = a.value
	}
	return nil
}

// maxThreads is how many a block of any device has at most.
const maxThreads = 1024

// dims are the sizes as the driver takes them.
func (h Shape) dims() (d [6]uint32, ok bool) {
	threads := 1
	for i, n := range [6]int{h.Grid.X, h.Grid.Y, h.Grid.Z, h.Block.X, h.Block.Y, h.Block.Z} {
		if n == 0 && i%3 != 0 {
			n = 1
		}
		most := [6]int{math.MaxInt32, math.MaxUint16, math.MaxUint16, maxThreads, maxThreads, maxThreads}[i]
		if n < 1 || n > most {
			return d, false
		}
		if d[i] = uint32(n); i >= 3 {
			threads *= n
		}
	}
	return d, threads <= maxThreads && h.Shared >= 0 && h.Shared <= math.MaxInt32
}

// String reads like 16x4x1.
func (d Dim) String() string { return fmt.Sprintf("%dx%dx%d", d.X, max(d.Y, 1), max(d.Z, 1)) }
