package xla

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/lent"
	"github.com/goccl/goccl/xla/hlo"
)

// A Buffer is an array in the device's memory.
type Buffer struct {
	own   *owned
	shape *shape
	view  bool
}

// Type returns the type of the elements.
func (b *Buffer) Type() hlo.Type { return b.shape.t }

// Dims returns the dimensions.
func (b *Buffer) Dims() []int {
	d := make([]int, len(b.shape.dims))
	for i, n := range b.shape.dims {
		d[i] = int(n)
	}
	return d
}

// Len returns the number of elements.
func (b *Buffer) Len() int { return b.shape.elements() }

// of is an error if b is not of c.
func (b *Buffer) of(c *Client) error {
	switch {
	case b == nil || b.own == nil:
		return errors.New("xla: it is nil")
	case b.own.c != c:
		return fmt.Errorf("xla: %s, made at %s, is of another client", b.own.res.What, b.own.res.Made)
	}
	return nil
}

// take is owned.take: b may be donated.
func (b *Buffer) take() (uintptr, error) {
	if b.view {
		return 0, fmt.Errorf("xla: %s, made at %s, cannot be donated: its memory is not XLA's", b.own.res.What,
			b.own.res.Made)
	}
	return b.own.take()
}

// Put copies data to the device, as an array of these dimensions; none make a scalar.
func Put[T ccl.Number](c *Client, data []T, dims ...int) (*Buffer, error) {
	s, err := newShape(kindFor[T](), dims)
	if err != nil {
		return nil, err
	}
	if n := s.elements(); n != len(data) {
		return nil, fmt.Errorf("xla: put: %d elements for %s, which has %d", len(data), s.text, n)
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.RUnlock()
	h, said := put(c.p.api, c.handle, c.device, unsafe.Pointer(unsafe.SliceData(data)), s)
	runtime.KeepAlive(data)
	if err := failure("put", s.text, said); err != nil {
		return nil, err
	}
	return &Buffer{own: c.own(lent.Here(), s.text, placeBuffer, h), shape: s}, nil
}

// ViewSlice returns a view of the host's memory, for a client of the CPU: the program reads s
// itself, which must begin at a multiple of 64 bytes. A view may not be donated. Programs that read
// it keep s, also once the view is freed. They run between the writes of others: wait for them
// before s is written again.
func ViewSlice[T ccl.Number](c *Client, s []T, dims ...int) (*Buffer, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.RUnlock()
	if !c.OnHost() {
		return nil, fmt.Errorf("xla: view: a slice of the host cannot be read in place by %s: use Put", c.platform)
	}
	if n := len(s); n > 0 {
		if at := uintptr(unsafe.Pointer(&s[0])); at%viewAlign != 0 {
			return nil, fmt.Errorf("xla: view: the slice begins at %#x: XLA's CPU reads in place what begins at a multiple of %d", at, viewAlign)
		}
	}
	return c.view(uintptr(unsafe.Pointer(unsafe.SliceData(s))), kindFor[T](), len(s), s, dims)
}

// ViewMemory returns a view of memory of the client's device, which cuda.Alloc or ccl.MakeDevice
// has made, for example. It must outlive the view. What was said of ViewSlice holds here.
func ViewMemory[T ccl.Number](c *Client, m ccl.Memory[T], dims ...int) (*Buffer, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.mu.RUnlock()
	if m == nil {
		return nil, errors.New("xla: view: no memory")
	}
	if c.OnHost() || m.Device() != c.hardware {
		return nil, fmt.Errorf("xla: view: memory of device %d is no memory of %s %d", m.Device(), c.platform, c.hardware)
	}
	at, ok := m.Ptr()
	if !ok {
		return nil, fmt.Errorf("xla: view: the memory was freed: %w", ErrClosed)
	}
	return c.view(at, kindFor[T](), m.Len(), m, dims)
}

const viewAlign = 64

func (c *Client) view(at uintptr, k kind, n int, keep any, dims []int) (*Buffer, error) {
	s, err := newShape(k, dims)
	if err != nil {
		return nil, err
	}
	if s.elements() != n || n == 0 {
		return nil, fmt.Errorf("xla: view: %d elements for %s, which has %d", n, s.text, s.elements())
	}
	h, mark, said := view(c.p.api, c.handle, c.device, at, s)
	if err := failure("view", s.text, said); err != nil {
		return nil, err
	}
	viewed.add(mark, keep)
	return &Buffer{own: c.own(lent.Here(), "a view of "+s.text, placeBuffer, h), shape: s, view: true}, nil
}

// Get waits for b and copies it to dst, row after row.
func Get[T ccl.Number](b *Buffer, dst []T) error {
	if b == nil {
		return fmt.Errorf("xla: get: no buffer: %w", ErrClosed)
	}
	if k := kindFor[T](); k.t != b.shape.t {
		return fmt.Errorf("xla: get: %s into a slice of %s", b.shape.text, k.t)
	}
	if n := b.Len(); n != len(dst) {
		return fmt.Errorf("xla: get: %s, which has %d elements, into a slice of %d", b.shape.text, n, len(dst))
	}
	h, err := b.own.use()
	if err != nil {
		return err
	}
	defer b.own.done()
	defer runtime.KeepAlive(dst)
	return failure("get", b.shape.text, get(b.own.c.p.api, h, unsafe.Pointer(unsafe.SliceData(dst)), b.shape))
}

// Wait waits until b is computed. Its error is that of the program that computes it.
func (b *Buffer) Wait() error {
	if b == nil {
		return fmt.Errorf("xla: wait: no buffer: %w", ErrClosed)
	}
	h, err := b.own.use()
	if err != nil {
		return err
	}
	defer b.own.done()
	return failure("wait", b.shape.text, await(b.own.c.p.api, h))
}

// Free releases b. Programs that read it go on. Nil is nothing to free.
func (b *Buffer) Free() error {
	if b == nil {
		return nil
	}
	return b.own.release()
}

// FreeAll frees buffers, and returns the first error.
func FreeAll(list ...*Buffer) error {
	var first error
	for _, b := range slices.Backward(list) {
		first = cmp.Or(first, b.Free())
	}
	return first
}
