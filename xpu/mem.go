package xpu

import (
	"fmt"

	"github.com/goccl/goccl/internal/lent"
	"github.com/goccl/goccl/internal/sycl"
)

// Element is a type of elements: all that ccl.Number allows.
type Element interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint | ~float32 | ~float64
}

// Mem is n elements in a device's memory. A *Mem[T] is a ccl.Memory[T].
type Mem[T Element] struct {
	_   [0]T // keeps types of elements apart, in conversions too
	mem lent.Memory
}

// Host is n elements of pinned host memory: an ordinary slice that devices read and write directly, and the only host
// memory that copies in the background work on.
type Host[T Element] struct {
	_   [0]T
	mem lent.Memory
}

// Alloc returns n elements of memory on d, which hold anything.
func Alloc[T Element](d Device, n int) (*Mem[T], error) {
	return allocate[T](d, n, sycl.OnDevice)
}

// AllocManaged returns n elements of memory with one address for d and the host, between which the driver moves it.
func AllocManaged[T Element](d Device, n int) (*Mem[T], error) {
	return allocate[T](d, n, sycl.Shared)
}

// AllocHost returns n elements of pinned host memory, which hold anything. All devices of d's platform can use it.
func AllocHost[T Element](d Device, n int) (*Host[T], error) {
	m, err := allocate[T](d, n, sycl.OnHost)
	if err != nil {
		return nil, err
	}
	return &Host[T]{mem: m.mem}, nil
}

// allocate makes memory of any kind. None is asked of SYCL for no elements.
func allocate[T Element](d Device, n int, kind sycl.Kind) (*Mem[T], error) {
	s, err := d.describe()
	if err != nil {
		return nil, err
	}
	bytes, elem, ok := lent.Bytes[T](n)
	if !ok {
		return nil, fmt.Errorf("xpu: device %d: %d elements of %d bytes is not a valid size", d.n, n, elem)
	}
	what := fmt.Sprintf("%d bytes of %v memory", bytes, kind)
	var p uintptr
	free := func(uintptr) error { return nil }
	if n > 0 {
		if p, err = sycl.New(d.n, kind, bytes); err != nil {
			return nil, fmt.Errorf("xpu: device %d: %s, of %d that it has: %w", d.n, what, s.Memory, err)
		}
		free = func(p uintptr) error { return sycl.Free(d.n, p) }
	}
	return &Mem[T]{mem: lent.NewMemory[T](d.lend(what, p, free), n, kind != sycl.OnDevice)}, nil
}

// Ptr is the address; ok is false once the memory is freed. No elements have no address: 0, true.
func (m *Mem[T]) Ptr() (addr uintptr, ok bool) {
	addr, _, err := m.of().Use("Ptr", 0)
	return addr, err == nil
}

// Device is the number of the device.
func (m *Mem[T]) Device() int { return m.of().Device() }

// Len is the number of elements.
func (m *Mem[T]) Len() int { return m.of().Count() }

// Elem is zero: it carries the type.
func (m *Mem[T]) Elem() (zero T) { return zero }

// Platform is "xpu".
func (m *Mem[T]) Platform() string { return "xpu" }

// Part is m[i:j]: the same memory, which is freed as a whole.
func (m *Mem[T]) Part(i, j int) (*Mem[T], error) {
	part, err := m.of().Part(i, j)
	if err != nil {
		return nil, err
	}
	return &Mem[T]{mem: part}, nil
}

// Slice is managed memory as the host sees it, until it is freed.
func (m *Mem[T]) Slice() ([]T, error) { return lent.Elements[T](m.of()) }

// Free gives the memory back, which nothing that was issued may still use. To free it twice is an error.
func (m *Mem[T]) Free() error { return m.of().Free() }

// of is what m holds, nil if there is none.
func (m *Mem[T]) of() *lent.Memory {
	if m == nil {
		return nil
	}
	return &m.mem
}

// Slice is the memory, until it is freed; nil after that.
func (h *Host[T]) Slice() []T {
	s, _ := lent.Elements[T](h.of())
	return s
}

// Len is the number of elements.
func (h *Host[T]) Len() int { return h.of().Count() }

// Part is h[i:j]: the same memory, which is freed as a whole.
func (h *Host[T]) Part(i, j int) (*Host[T], error) {
	part, err := h.of().Part(i, j)
	if err != nil {
		return nil, err
	}
	return &Host[T]{mem: part}, nil
}

// Free gives the memory back: wait for copies that use it first, and use no Slice of it again. To free it twice is an
// error.
func (h *Host[T]) Free() error { return h.of().Free() }

// of is what h holds, nil if there is none.
func (h *Host[T]) of() *lent.Memory {
	if h == nil {
		return nil
	}
	return &h.mem
}
