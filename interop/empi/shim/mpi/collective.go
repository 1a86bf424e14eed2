package mpi

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// As in empi, what a rank gives decides how much is moved: a buffer for results may be longer.

func broadcast[T number](cm *Comm, call string, root int, vals []T) error {
	return cm.do(call, func(m *member) error { return ccl.Broadcast(context.Background(), m.c, vals, root) })
}

func allReduce[T number](cm *Comm, call string, op Op, dest, orig []T) error {
	if orig == nil {
		orig = dest
	}
	return cm.do(call, func(m *member) error { return reduceAll(m.c, op, dest, head(orig, len(dest))) })
}

func reduce[T number](cm *Comm, call string, root int, op Op, dest, orig []T) error {
	return cm.do(call, func(m *member) error {
		if root < 0 || root >= m.c.Size() {
			return fmt.Errorf("root %d of %d ranks", root, m.c.Size())
		}
		o, ok := arithmetic[op]
		if !ok {
			if m.c.Rank() != root {
				dest = make([]T, len(orig))
			}
			return reduceAll(m.c, op, head(dest, len(orig)), orig)
		}
		return ccl.Reduce(context.Background(), m.c, head(dest, len(orig)), orig, o, root)
	})
}

func gather[T number](cm *Comm, call string, root int, dest, orig []T) error {
	return cm.do(call, func(m *member) error {
		return ccl.Gather(context.Background(), m.c, head(dest, m.c.Size()*len(orig)), orig, root)
	})
}

func allGather[T number](cm *Comm, call string, dest, orig []T) error {
	return cm.do(call, func(m *member) error {
		return ccl.AllGather(context.Background(), m.c, head(dest, m.c.Size()*len(orig)), orig)
	})
}

func scatter[T number](cm *Comm, call string, root int, dest, orig []T) error {
	return cm.do(call, func(m *member) error {
		return ccl.Scatter(context.Background(), m.c, dest, head(orig, m.c.Size()*len(dest)), root)
	})
}

// head is the first n elements of s, or all if it has fewer: the call then says what is missing.
func head[T any](s []T, n int) []T { return s[:min(n, len(s))] }

// sum is nil if op is OpSum, the one operation that is on complex numbers what it is on their parts.
func sum(call string, op Op) error {
	if op == OpSum {
		return nil
	}
	return failed(call, fmt.Errorf("%v of complex numbers: %w: only OpSum is", op, errors.ErrUnsupported))
}

// floats64 and floats32 are the real and imaginary parts of s; nil stays nil.
func floats64(s []complex128) []float64 {
	return unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(s))), 2*len(s))
}

func floats32(s []complex64) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(s))), 2*len(s))
}
