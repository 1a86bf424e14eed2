package ccl

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"

	"github.com/goccl/goccl/internal/engine"
)

// MakeDevice returns n elements of memory on c's device, which hold anything. The library of c's
// backend allocates it (ncclMemAlloc: NCCL 2.19, RCCL of ROCm 6.2), in the way in which the peers
// and the network reach it best: it is memory for [Comm.Register], and the only memory for
// [Comm.Window]. It is local: ranks may ask for different n, or for none. A backend or a version
// that has no such memory gives ErrUnsupported; on the CPU [MakeSlice] makes memory for fewer
// copies.
//
// [BufOfMemory] is the view of it that calls take; to copy to and from it, packages cuda and rocm
// have MemOf. The memory lives until FreeDevice or exit, whatever becomes of c.
func MakeDevice[T Number](ctx context.Context, c *Comm, n int) (Memory[T], error) {
	const op = "MakeDevice"
	if err := usable(ctx, c, op); err != nil {
		return nil, err
	}
	var zero T
	size := int(unsafe.Sizeof(zero))
	m, err := memoryOf(c, "has no device memory; MakeSlice makes host memory that needs fewer copies",
		"allocates no memory here")
	switch {
	case err != nil:
		return nil, c.refuse(op, ErrUnsupported, err)
	case n < 0 || n > math.MaxInt/16/size:
		return nil, c.refuse(op, ErrArgument, fmt.Errorf("memory of %d elements", n))
	}
	b := &deviceBlock{device: c.lib.device, platform: c.lib.backend.Platform}
	if n > 0 {
		if b.at, b.release, err = m.Alloc(n * size); errors.Is(err, engine.ErrUnsupported) {
			return nil, c.refuse(op, ErrUnsupported, err)
		} else if err != nil {
			return nil, c.refuse(op, ErrBackend, fmt.Errorf("%d bytes on device %d: %w", n*size, b.device, vendorError(err)))
		}
	}
	return &deviceElements[T]{b, n}, nil
}

// usable is nil, or why op, a call of this rank alone, cannot be made now.
func usable(ctx context.Context, c *Comm, op string) error {
	if err := callable(ctx, c, named(op)); err != nil {
		return err
	}
	if err := c.Err(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return c.refuse(op, waitError(err, c).Code, err)
	}
	return nil
}

// memoryOf is c's library as what makes and registers memory on its device, or why it is not: the
// backend takes host memory, or the library has no such calls. The answer is the same on all ranks.
func memoryOf(c *Comm, onHost, lacks string) (engine.Memory, error) {
	if c.lib.device < 0 {
		return nil, errors.New("the backend " + c.Backend() + " " + onHost)
	}
	if m, ok := c.lib.end.Engine.(engine.Memory); ok {
		return m, nil
	}
	return nil, errors.New(c.Library() + " " + lacks)
}

// FreeDevice gives back what MakeDevice returned. What was issued with it must be done: the library
// does not wait for that. Memory that is still registered, or has a window, is refused, until that
// is released or its Comm closed.
func FreeDevice[T Number](m Memory[T]) error {
	if m == nil {
		return nil
	}
	refuse := func(code Code, err error) error {
		return &Error{Code: code, Op: "FreeDevice", Rank: -1, Peer: -1, Err: err}
	}
	d, ok := m.(*deviceElements[T])
	if !ok {
		return refuse(ErrArgument, fmt.Errorf("the memory, a %s, was not made by MakeDevice: free it where it was made",
			typeName(m)))
	}
	if err := d.free(); err != nil {
		var l *engine.LibraryError
		if errors.As(err, &l) {
			return refuse(ErrBackend, vendorError(err))
		}
		return refuse(ErrArgument, err)
	}
	return nil
}

// DeviceMemory returns how many bytes of its device the library of c's backend has allocated for c:
// channels, buffers of connections. ncclCommMemStats says it, from NCCL 2.29.7 on; a backend or a
// version that does not gives ErrUnsupported.
func DeviceMemory(c *Comm) (bytes uint64, err error) {
	const op = "DeviceMemory"
	if c.isNil() {
		return 0, refuseNone(op)
	}
	if c.life.shut() {
		return 0, c.refuse(op, ErrClosed, whyShut())
	}
	m, err := memoryOf(c, "has no memory of a device", "does not say what it has allocated")
	if err != nil {
		return 0, c.refuse(op, ErrUnsupported, err)
	}
	bytes, err = m.Allocated()
	switch {
	case err == nil:
		return bytes, nil
	case errors.Is(err, engine.ErrUnsupported):
		return 0, c.refuse(op, ErrUnsupported, err)
	case c.Err() != nil:
		return 0, c.Err()
	}
	return 0, c.refuse(op, ErrBackend, vendorError(err))
}

// deviceElements is memory of MakeDevice.
type deviceElements[T Number] struct {
	*deviceBlock
	n int
}

// Len is the number of elements.
func (d *deviceElements[T]) Len() int { return d.n }

// Elem carries the type.
func (d *deviceElements[T]) Elem() (zero T) { return zero }

// deviceBlock is memory of a library.
type deviceBlock struct {
	device   int
	platform string

	mu      sync.Mutex
	at      uintptr      // 0 of no elements
	release func() error // nil of no elements
	freed   bool
	held    int32 // registrations and windows
}

// Ptr is the address; ok is false once the memory is freed.
func (b *deviceBlock) Ptr() (addr uintptr, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at, !b.freed
}

// Device is the number of the device.
func (b *deviceBlock) Device() int { return b.device }

// Platform is the package of the device.
func (b *deviceBlock) Platform() string { return b.platform }

func (b *deviceBlock) hold(n int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.held += n
}

func (b *deviceBlock) free() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.freed:
		return errors.New("the device memory was freed before")
	case b.held > 0:
		return fmt.Errorf("the memory has %d window%s or registration%[2]s: first release what Register and Window returned, or close the Comm", b.held, plural(int(b.held)))
	}
	b.freed = true
	b.at = 0
	if b.release == nil {
		return nil
	}
	return b.release()
}
