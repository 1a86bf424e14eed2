//go:build cu

package cu

import (
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	gorgonia "gorgonia.org/cu"

	"github.com/goccl/goccl/ccl"
)

var errClosed = errors.New("cu: closed or freed before")

// Mem is n elements at an address of gorgonia.org/cu, as a ccl.Memory.
type Mem[T ccl.Number] struct {
	p      gorgonia.DevicePtr
	n      int
	device int
	freed  atomic.Bool
}

// Memory is the n elements at p, on the device with that number among the visible ones. It is freed by Free, or by
// gorgonia.MemFree once no call uses it any more, of which this package does not learn.
func Memory[T ccl.Number](p gorgonia.DevicePtr, n, device int) (*Mem[T], error) {
	var elem T
	switch size := int(unsafe.Sizeof(elem)); {
	case n < 0 || n > math.MaxInt/size:
		return nil, fmt.Errorf("cu: %d elements of %d bytes is not a valid size", n, size)
	case n > 0 && p == 0:
		return nil, fmt.Errorf("cu: %d elements at no address", n)
	case device < 0:
		return nil, fmt.Errorf("cu: device %d: devices are numbered from 0", device)
	}
	return &Mem[T]{p: p, n: n, device: device}, nil
}

// Ptr is the address; ok is false once m is freed.
func (m *Mem[T]) Ptr() (addr uintptr, ok bool) {
	if m == nil || m.freed.Load() {
		return 0, false
	}
	return m.p.Uintptr(), true
}

// Device is the number of the device.
func (m *Mem[T]) Device() int { return m.device }

// Len is the number of elements.
func (m *Mem[T]) Len() int { return m.n }

// Elem is zero: it carries the type.
func (m *Mem[T]) Elem() (zero T) { return zero }

// Free gives the memory back. To free it twice is an error.
func (m *Mem[T]) Free() error {
	if m == nil || !m.freed.CompareAndSwap(false, true) {
		return errClosed
	}
	if m.p == 0 {
		return nil
	}
	return gorgonia.MemFree(m.p)
}
