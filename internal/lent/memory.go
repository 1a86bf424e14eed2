package lent

import (
	"fmt"
	"math"
	"unsafe"
)

// Memory is elements of one type in memory that a runtime has lent: the whole, or a part of it.
// Address and length lie in it, and were checked when it was made. Later only one thing can change:
// the whole is given back, which every use asks. The zero Memory was never lent. Methods take it,
// and nil, as given back.
type Memory struct {
	Addr  uintptr // 0 if there are no elements
	Len   int
	Whole *Resource // which is given back; parts share it

	elem int // bytes of an element
	host bool
	part bool
}

// NewMemory describes the whole: n elements of type T. host says that the host reads and writes them where they lie.
func NewMemory[T any](whole *Resource, n int, host bool) Memory {
	return Memory{Addr: whole.H, Len: n, Whole: whole, elem: sizeOf[T](), host: host}
}

// Bytes returns the size of n elements of type T. ok is false if no memory has that size.
func Bytes[T any](n int) (bytes, elem int, ok bool) {
	elem = sizeOf[T]()
	return n * elem, elem, n >= 0 && n <= math.MaxInt/elem
}

func sizeOf[T any]() int {
	var zero T
	return int(unsafe.Sizeof(zero))
}

// Use returns where the first n elements lie, and their size in bytes, for a call with that name.
func (m *Memory) Use(call string, n int) (addr uintptr, bytes int, err error) {
	if m == nil {
		return 0, 0, errNone
	}
	if _, err := m.Whole.Use(); err != nil {
		return 0, 0, err
	}
	if n > m.Len {
		return 0, 0, fmt.Errorf("%s: %s of %d elements, but the memory has %d", m.Whole.pkg, call, n, m.Len)
	}
	return m.Addr, n * m.elem, nil
}

// Copy returns the addresses and the bytes of a copy of n elements, for a method of m, which is to or from.
func Copy(to, from, m *Memory, method string, n int) (dst, src uintptr, bytes int, err error) {
	if _, bytes, err = m.Use(method, n); err != nil {
		return 0, 0, 0, err
	}
	if dst, _, err = to.Use(method, 0); err != nil {
		return 0, 0, 0, err
	}
	src, _, err = from.Use(method, 0)
	return dst, src, bytes, err
}

// Device is the number of m's device, -1 if m was never lent.
func (m *Memory) Device() int {
	if m == nil {
		return -1
	}
	return m.Whole.Device()
}

// Count is the number of m's elements, 0 if m is nil.
func (m *Memory) Count() int {
	if m == nil {
		return 0
	}
	return m.Len
}

// Part returns elements i to j, j excluded.
func (m *Memory) Part(i, j int) (Memory, error) {
	if _, _, err := m.Use("Part", 0); err != nil {
		return Memory{}, err
	}
	if i < 0 || j < i || j > m.Len {
		return Memory{}, fmt.Errorf("%s: [%d:%d] of memory of %d elements", m.Whole.pkg, i, j, m.Len)
	}
	p := *m
	p.Addr, p.Len, p.part = m.Addr+uintptr(i*m.elem), j-i, true
	return p, nil
}

// Free gives the whole back, once. A part cannot be freed.
func (m *Memory) Free() error {
	if m != nil && m.part {
		return fmt.Errorf("%s: only whole memory can be freed, not a part; the whole was made at %s", m.Whole.pkg,
			m.Whole.Made)
	}
	if m == nil {
		return errNone
	}
	return m.Whole.Close()
}

// Elements returns m, of elements of type T, as a slice for the host. The address is not in Go's
// memory and may be kept as a pointer.
func Elements[T any](m *Memory) ([]T, error) {
	if _, _, err := m.Use("Slice", 0); err != nil {
		return nil, err
	}
	if !m.host {
		return nil, fmt.Errorf("%s: %s cannot be read by the host: copy it with Get, or use AllocManaged for memory that both can read", m.Whole.pkg, m.Whole.What)
	}
	if m.Len == 0 {
		return nil, nil
	}
	return unsafe.Slice(*(**T)(unsafe.Pointer(&m.Addr)), m.Len), nil
}
