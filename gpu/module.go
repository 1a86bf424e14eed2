package gpu

import (
	"fmt"
	"math"
	"strings"
	"unsafe"

	rt "github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// Module is code for a device: its kernels.
type Module struct {
	lent *lent.Resource
	p    rt.Programs
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

// Load compiles an image for d: PTX, as text, or a cubin. If it cannot be compiled, the error has what
// the driver's compiler says. Close releases the Module.
//
//	m, err := cuda.Load(d, ptx)
//	saxpy, err := m.Kernel("saxpy")
//	how := cuda.Shape{Grid: cuda.Dim{X: (n + 255) / 256}, Block: cuda.Dim{X: 256}}
//	err = saxpy.Launch(s, how, y.Arg(), x.Arg(), cuda.Value(float32(2)), cuda.Value(uint32(n)))
//
// Where the driver tells what parameters a kernel has, from CUDA 12.4 on, Launch refuses other
// arguments; older drivers read what they are given.
func Load(d Device[CUDA], image []byte) (*Module, error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	p, err := drv.Programs(d.rt)
	if err != nil {
		return nil, err
	}
	if len(image) == 0 {
		return nil, d.rt.Errorf("%v: Load of an empty image", d)
	}
	h, log, c := p.Load(d.n, image)
	if c != rt.Success {
		what := fmt.Sprintf("an image of %d bytes", len(image))
		if log = strings.TrimSpace(log); log != "" {
			what += ": " + log
		}
		return nil, d.rt.Failure(c, "cuModuleLoadDataEx", d.n, what)
	}
	unload := func(_ rt.Driver, dev int, h uintptr) rt.Code { return p.Unload(dev, h) }
	return &Module{lend(d.rt, d.n, "module", "ModuleUnload", h, unload), p}, nil
}

// of is m's resource, nil if there is none.
func (m *Module) of() *lent.Resource {
	if m == nil {
		return nil
	}
	return m.lent
}

// Kernel returns the kernel of that name: in C++ one that is extern "C".
func (m *Module) Kernel(name string) (*Kernel, error) {
	h, err := m.of().Use()
	if err != nil {
		return nil, err
	}
	if name == "" || strings.ContainsRune(name, 0) {
		return nil, rt.CUDA.Errorf("%q is not the name of a kernel", name)
	}
	f, sizes, c := m.p.Function(m.lent.Dev, h, name)
	if c != rt.Success {
		return nil, rt.CUDA.Failure(c, "cuModuleGetFunction", m.lent.Dev, fmt.Sprintf("kernel %q", name))
	}
	return &Kernel{m, f, name, sizes}, nil
}

// Close releases the module and its kernels. It waits for all work on the device.
func (m *Module) Close() error { return m.of().Close() }

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
func (m *Mem[T, P]) Arg() Arg {
	p, _, err := m.of().Use("Arg", 0)
	if err != nil {
		return Arg{err: err}
	}
	return Pointer(p)
}

// Launch issues k to s, with one argument for each parameter. Memory that it uses must not be freed before it is done.
func (k *Kernel) Launch(s *Stream[CUDA], how Shape, args ...Arg) error {
	var m *Module
	if k != nil {
		m = k.m
	}
	_, stream, err := lent.UseBoth(m.of(), s.of())
	if err != nil {
		return err
	}
	dev := m.lent.Dev
	if on := s.Device(); on != dev {
		return rt.CUDA.Errorf("kernel %s is of cuda:%d, and the stream of cuda:%d", k.name, dev, on)
	}
	var values [rt.MaxParams]uint64
	if err := k.fill(&values, args); err != nil {
		return err
	}
	dims, ok := how.dims()
	if !ok {
		return rt.CUDA.Errorf("kernel %s: a grid of %v blocks of %v threads with %d bytes of shared memory: a grid has 1 to %d blocks in X and up to %d in Y and Z, "+
			"and a block has 1 to %d threads in all", k.name, how.Grid, how.Block, how.Shared, math.MaxInt32, math.MaxUint16,
			maxThreads)
	}
	if c := m.p.Start(dev, stream, k.f, dims, how.Shared, values, len(args)); c != rt.Success {
		return rt.CUDA.Failure(c, "cuLaunchKernel", dev, "kernel "+k.name)
	}
	return nil
}

// fill checks the arguments against the parameters.
func (k *Kernel) fill(values *[rt.MaxParams]uint64, args []Arg) error {
	if k.sizes != nil && len(args) != len(k.sizes) || len(args) > rt.MaxParams {
		return rt.CUDA.Errorf("kernel %s: %d arguments, and it has %d parameters", k.name, len(args), len(k.sizes))
	}
	for i := range args {
		a := &args[i]
		switch {
		case a.err != nil:
			return rt.CUDA.Errorf("kernel %s: argument %d: %w", k.name, i, a.err)
		case a.size == 0:
			return rt.CUDA.Errorf("kernel %s: argument %d is the zero Arg: Value, Pointer and Mem.Arg make one", k.name, i)
		case k.sizes != nil && int(a.size) != k.sizes[i]:
			return rt.CUDA.Errorf("kernel %s: argument %d has %d bytes, and the parameter %d", k.name, i, a.size, k.sizes[i])
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
