package gpu

import "github.com/goccl/goccl/internal/lent"

// Host is n elements of pinned host memory: an ordinary slice that devices read and write directly, and the only host
// memory that copies in the background work on.
type Host[T Element] struct{ *block }

// AllocHost returns n elements of pinned host memory, which hold anything. d is the device that it is made through;
// all devices can use it.
func AllocHost[T Element](d Device, n int) (*Host[T], error) {
	b, err := allocate[T](d, n, pinned)
	if err != nil {
		return nil, err
	}
	return &Host[T]{b}, nil
}

// Slice returns the memory as a slice, or nil once it is freed.
func (h *Host[T]) Slice() []T {
	if h.all() == nil {
		return nil
	}
	return lent.Elements[T](&h.mem)
}

// Len returns the number of elements.
func (h *Host[T]) Len() int { return h.all().len() }

// Part returns h[i:j]. It shares the memory of h, and only the whole can be freed.
func (h *Host[T]) Part(i, j int) (*Host[T], error) {
	b, err := h.all().slice(i, j)
	if err != nil {
		return nil, err
	}
	return &Host[T]{b}, nil
}

// Free releases the memory. Wait first for copies that use it, and do not use its Slice again. Freeing it twice is an
// error.
func (h *Host[T]) Free() error { return h.all().free() }

// use is h's block, for a call.
func (h *Host[T]) use() (*block, error) { return h.all(), h.all().live() }

// all is h's block, nil if there is none.
func (h *Host[T]) all() *block {
	if h == nil {
		return nil
	}
	return h.block
}
