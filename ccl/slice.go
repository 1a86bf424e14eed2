package ccl

import (
	"context"
	"fmt"
	"math"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/shm"
)

// MakeSlice returns n zero elements in memory that all ranks of this host can map, so that calls
// copy less. All ranks of the host must call it; n may differ. More memory than the host has is
// refused with ErrBackend. The memory lives until FreeSlice or the end of the process, independent
// of c. It is the same to the Comms of Replace, Shrink, Split and Grow; to those of a job of its own it
// is ordinary memory. Appending beyond the capacity moves the
// slice to ordinary memory. A call that fails concerns only the elements that were its result.
func MakeSlice[T Element](ctx context.Context, c *Comm, n int) ([]T, error) {
	const op = "MakeSlice"
	if err := usable(ctx, c, op); err != nil {
		return nil, err
	}
	var z T
	if n < 0 || n > math.MaxInt/16/int(unsafe.Sizeof(z)) {
		return nil, c.refuse(op, ErrArgument, fmt.Errorf("a slice of %d elements", n))
	}
	if n == 0 {
		return []T{}, nil
	}
	if !c.life.enter() {
		return nil, c.refuse(op, ErrClosed, nil)
	}
	mem, err := c.eng.MakeMemory(n * int(unsafe.Sizeof(z)))
	c.life.busy.Clear()
	if err != nil {
		return nil, c.refuse(op, ErrBackend, err)
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[0])), n), nil
}

// FreeSlice gives back what MakeSlice returned; s must not be used afterwards. It ignores other
// slices.
func FreeSlice[T Element](s []T) {
	if cap(s) > 0 {
		shm.FreeMemory(unsafe.Pointer(unsafe.SliceData(s)))
	}
}
