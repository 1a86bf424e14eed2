package xpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/goccl/goccl/internal/lent"
	"github.com/goccl/goccl/internal/sycl"
)

// Element is a type of elements: all that ccl.Number allows.
type Element interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~float32 | ~float64
}

// Mem is n elements in a device's memory. A *Mem[T] is a ccl.Memory[T].
type Mem[T Element] struct{ *block }

// Host is n elements of pinned host memory: an ordinary slice that devices read and write directly, and the only host
// memory that copies in the background work on.
type Host[T Element] struct{ *block }

// block is memory of any type, or a part of it.
type block struct {
	*resource
	kind sycl.Kind
	mem  lent.Block
}

// Alloc returns n elements of memory on d, which hold anything.
func Alloc[T Element](d Device, n int) (*Mem[T], error) {
	b, err := allocate[T](d, n, sycl.OnDevice)
	if err != nil {
		return nil, err
	}
	return &Mem[T]{b}, nil
}

// AllocManaged returns n elements of memory with one address for d and the host, between which the driver moves it.
func AllocManaged[T Element](d Device, n int) (*Mem[T], error) {
	b, err := allocate[T](d, n, sycl.Shared)
	if err != nil {
		return nil, err
	}
	return &Mem[T]{b}, nil
}

// AllocHost returns n elements of pinned host memory, which hold anything. All devices of d's platform can use it.
func AllocHost[T Element](d Device, n int) (*Host[T], error) {
	b, err := allocate[T](d, n, sycl.OnHost)
	if err != nil {
		return nil, err
	}
	return &Host[T]{b}, nil
}

// allocate makes the memory. None is asked of SYCL for no elements.
func allocate[T Element](d Device, n int, kind sycl.Kind) (*block, error) {
	s, err := d.describe()
	if err != nil {
		return nil, err
	}
	var elem T
	size := int(unsafe.Sizeof(elem))
	if n < 0 || n > math.MaxInt/size {
		return nil, fmt.Errorf("xpu: device %d: %d elements of %d bytes is not a valid size", d.n, n, size)
	}
	what := fmt.Sprintf("%d bytes of %v memory", n*size, kind)
	var p uintptr
	if n > 0 {
		if p, err = sycl.New(d.n, kind, n*size); err != nil {
			return nil, fmt.Errorf("xpu: device %d: %s, of %d that it has: %w", d.n, what, s.Memory, err)
		}
	}
	r := newResource(d.n, what, p)
	return &block{r, kind, lent.NewBlock(r.lent, n, size)}, nil
}

func (b *block) ptr() (uintptr, bool) {
	if b == nil {
		return 0, false
	}
	return b.mem.Ptr()
}

// live is the address for a call, of what has not been freed.
func (b *block) live() (uintptr, error) {
	if b == nil {
		return 0, errNil
	}
	return b.mem.Use()
}

func (b *block) len() int {
	if b == nil {
		return 0
	}
	return b.mem.Len()
}

func (b *block) slice(i, j int) (*block, error) {
	if b == nil {
		return nil, errNil
	}
	part, err := b.mem.Part(i, j)
	if err != nil {
		return nil, err
	}
	return &block{b.resource, b.kind, part}, nil
}

func (b *block) free() error {
	if b == nil {
		return errNil
	}
	return b.mem.Free(func(p uintptr) error { return b.check(sycl.Free(b.dev, p)) })
}

// of is m's block.
func (m *Mem[T]) of() *block {
	if m == nil {
		return nil
	}
	return m.block
}

// Ptr is the address; ok is false once the memory is freed. No elements have no address: 0, true.
func (m *Mem[T]) Ptr() (addr uintptr, ok bool) { return m.of().ptr() }

// Device is the number of the device.
func (m *Mem[T]) Device() int {
	if m.of() == nil {
		return -1
	}
	return m.device()
}

// Len is the number of elements.
func (m *Mem[T]) Len() int { return m.of().len() }

// Elem is zero: it carries the type.
func (m *Mem[T]) Elem() (zero T) { return zero }

// Platform is "xpu".
func (m *Mem[T]) Platform() string { return "xpu" }

// Part is m[i:j]: the same memory, which is freed as a whole.
func (m *Mem[T]) Part(i, j int) (*Mem[T], error) {
	b, err := m.of().slice(i, j)
	if err != nil {
		return nil, err
	}
	return &Mem[T]{b}, nil
}

// Slice is managed memory as the host sees it, until it is freed.
func (m *Mem[T]) Slice() ([]T, error) {
	if _, err := m.of().live(); err != nil {
		return nil, err
	}
	if m.kind != sycl.Shared {
		return nil, fmt.Errorf("xpu: %s cannot be read by the host: copy it with Get, or use AllocManaged for memory that both can read", m.lent.What)
	}
	return lent.Elements[T](&m.mem), nil
}

// Free gives the memory back, which nothing that was issued may still use. To free it twice is an error.
func (m *Mem[T]) Free() error { return m.of().free() }

// Slice is the memory, until it is freed; nil after that.
func (h *Host[T]) Slice() []T {
	if h.of() == nil {
		return nil
	}
	return lent.Elements[T](&h.mem)
}

func (h *Host[T]) of() *block {
	if h == nil {
		return nil
	}
	return h.block
}

// Len is the number of elements.
func (h *Host[T]) Len() int { return h.of().len() }

// Part is h[i:j]: the same memory, which is freed as a whole.
func (h *Host[T]) Part(i, j int) (*Host[T], error) {
	b, err := h.of().slice(i, j)
	if err != nil {
		return nil, err
	}
	return &Host[T]{b}, nil
}

// Free gives the memory back: wait for copies that use it first, and use no Slice of it again. To free it twice is an
// error.
func (h *Host[T]) Free() error { return h.of().free() }
