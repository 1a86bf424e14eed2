package gpu

import (
	rt "github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// Host holds elements in pinned host memory: an ordinary slice that devices read and write directly, and the only host
// memory that copies in the background work on.
type Host[T Element, P Platform] struct {
	_   [0]P
	_   [0]T
	mem lent.Memory
}

// AllocHost allocates n elements of pinned host memory, for copies in the background. Their
// contents are undefined. d is the device that it is made through; all devices of P can use it.
func AllocHost[T Element, P Platform](d Device[P], n int) (*Host[T, P], error) {
	m, err := allocate[T](d, n, rt.Pinned)
	if err != nil {
		return nil, err
	}
	return &Host[T, P]{mem: m.mem}, nil
}

// Slice returns the memory as a slice, or nil once it is freed.
func (h *Host[T, P]) Slice() []T {
	s, _ := lent.Elements[T](h.of())
	return s
}

// Len returns the number of elements.
func (h *Host[T, P]) Len() int { return h.of().Count() }

// Part returns h[i:j]. It shares the memory of h, and only the whole can be freed.
func (h *Host[T, P]) Part(i, j int) (*Host[T, P], error) {
	part, err := h.of().Part(i, j)
	if err != nil {
		return nil, err
	}
	return &Host[T, P]{mem: part}, nil
}

// Free releases the memory. Wait first for copies that use it, and do not use its Slice again. Freeing it twice is an
// error.
func (h *Host[T, P]) Free() error { return h.of().Free() }

// of is what h holds, nil if there is none.
func (h *Host[T, P]) of() *lent.Memory {
	if h == nil {
		return nil
	}
	return &h.mem
}
