package gpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/goccl/goccl/internal/lent"
)

// Element is a type of elements: all that ccl.Number allows.
type Element interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~float32 | ~float64
}

// Mem is n elements in a device's memory. A *Mem[T] is a ccl.Memory[T].
type Mem[T Element] struct{ *block }

// block is memory of any type, or a part of it.
type block struct {
	*resource
	kind  kind
	mem   lent.Block
	other bool // someone else's
}

// Alloc returns n elements of memory on d, which hold anything.
func Alloc[T Element](d Device, n int) (*Mem[T], error) {
	b, err := allocate[T](d, n, onDevice)
	if err != nil {
		return nil, err
	}
	return &Mem[T]{b}, nil
}

// AllocManaged returns n elements of memory with one address for d and the host, between which the driver moves it.
func AllocManaged[T Element](d Device, n int) (*Mem[T], error) {
	b, err := allocate[T](d, n, managed)
	if err != nil {
		return nil, err
	}
	return &Mem[T]{b}, nil
}

// MemOf is n elements of memory that other code has made on d, such as ccl.MakeDevice, by its address. Freeing it leaves the memory
// itself alone.
func MemOf[T Element](d Device, addr uintptr, n int) (*Mem[T], error) {
	if _, err := d.ready(); err != nil {
		return nil, err
	}
	var elem T
	size := int(unsafe.Sizeof(elem))
	if n < 0 || n > math.MaxInt/size || addr == 0 && n > 0 {
		return nil, d.rt.errorf("%v: %d elements of %d bytes at %#x is not valid memory", d, n, size, addr)
	}
	what := fmt.Sprintf("%d bytes of %s", n*size, kinds[onDevice].what)
	r := &resource{rt: d.rt, dev: d.n, lent: lent.Borrowed(d.rt.pkg, d.n, what, addr)}
	return &Mem[T]{&block{r, onDevice, lent.NewBlock(r.lent, n, size), true}}, nil
}

// kinds say what a kind is called, what makes it and what gives it back.
var kinds = [...]struct{ what, alloc, free string }{
	onDevice: {"device memory", "Malloc", "Free"},
	managed:  {"managed memory", "MallocManaged", "Free"},
	pinned:   {"pinned host memory", "HostAlloc", "FreeHost"},
}

// allocate makes the memory. None is asked of the library for no elements.
func allocate[T Element](d Device, n int, k kind) (*block, error) {
	drv, err := d.ready()
	if err != nil {
		return nil, err
	}
	var elem T
	size := int(unsafe.Sizeof(elem))
	if n < 0 || n > math.MaxInt/size {
		return nil, d.rt.errorf("%v: %d elements of %d bytes is not a valid size", d, n, size)
	}
	what := fmt.Sprintf("%d bytes of %s", n*size, kinds[k].what)
	var p uintptr
	if n > 0 {
		var c code
		if p, c = drv.alloc(d.n, k, n*size); c != success {
			return nil, d.outOfMemory(d.rt.failure(c, kinds[k].alloc, d.n, what))
		}
	}
	r := newResource(d.rt, d.n, what, kinds[k].free, p)
	return &block{r, k, lent.NewBlock(r.lent, n, size), false}, nil
}

// outOfMemory adds how much there is.
func (d Device) outOfMemory(e *Error) error {
	if code(e.Code) == noMemory {
		if free, total, err := d.Memory(); err == nil {
			e.What += fmt.Sprintf(", of %d that are free of %d", free, total)
		}
	}
	return e
}

// Ptr returns the address; ok is false once the memory is freed. Memory without elements has the address 0.
func (m *Mem[T]) Ptr() (addr uintptr, ok bool) { return m.all().ptr() }

// Device returns the number of the device.
func (m *Mem[T]) Device() int { return m.all().device() }

// Len returns the number of elements.
func (m *Mem[T]) Len() int { return m.all().len() }

// Elem returns zero. It carries the type.
func (m *Mem[T]) Elem() (zero T) { return zero }

// Platform returns "cuda" or "rocm".
func (m *Mem[T]) Platform() string { return m.all().platform() }

// Part returns m[i:j]. It shares the memory of m, and only the whole can be freed.
func (m *Mem[T]) Part(i, j int) (*Mem[T], error) {
	b, err := m.all().slice(i, j)
	if err != nil {
		return nil, err
	}
	return &Mem[T]{b}, nil
}

// Slice returns managed memory as a slice for the host. It is valid until the memory is freed.
func (m *Mem[T]) Slice() ([]T, error) {
	b, err := m.use()
	if err != nil {
		return nil, err
	}
	if b.kind != managed {
		return nil, b.rt.errorf("%s cannot be read by the host: copy it with Get, or use AllocManaged for memory that both can read", b.lent.What)
	}
	return lent.Elements[T](&b.mem), nil
}

// Free releases the memory. It waits for all work on the device, as cudaFree does, so issued work may still use the
// memory. Freeing it twice is an error.
func (m *Mem[T]) Free() error { return m.all().free() }

// all is m's block, nil if there is none.
func (m *Mem[T]) all() *block {
	if m == nil {
		return nil
	}
	return m.block
}

// use is m's block, for a call.
func (m *Mem[T]) use() (*block, error) { return m.all(), m.all().live() }

func (b *block) ptr() (uintptr, bool) {
	if b == nil {
		return 0, false
	}
	return b.mem.Ptr()
}

func (b *block) device() int {
	if b == nil {
		return -1
	}
	return b.resource.device()
}

func (b *block) len() int {
	if b == nil {
		return 0
	}
	return b.mem.Len()
}

func (b *block) platform() string {
	if b == nil {
		return ""
	}
	return b.rt.pkg
}

// live is an error of memory that was freed, or never made.
func (b *block) live() error {
	if b == nil {
		return errNil
	}
	_, err := b.mem.Use()
	return err
}

func (b *block) slice(i, j int) (*block, error) {
	if b == nil {
		return nil, errNil
	}
	part, err := b.mem.Part(i, j)
	if err != nil {
		return nil, err
	}
	return &block{b.resource, b.kind, part, b.other}, nil
}

func (b *block) free() error {
	if b == nil {
		return errNil
	}
	return b.mem.Free(func(p uintptr) error {
		if b.other {
			return nil
		}
		return b.rt.check(b.rt.drv.free(b.dev, b.kind, p), b.call, b.dev)
	})
}
