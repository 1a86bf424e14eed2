package xla

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// memory is a buffer as ccl's packages see device memory.
type memory[T ccl.Number] struct {
	b  *Buffer
	at uintptr
}

// Ptr is the address; ok is false once the buffer was freed or donated.
func (m memory[T]) Ptr() (uintptr, bool) { _, ok := m.b.own.res.Handle(); return m.at, ok }
func (m memory[T]) Device() int          { return m.b.own.c.hardware }
func (m memory[T]) Len() int             { return m.b.Len() }
func (m memory[T]) Elem() (zero T)       { return }

// MemoryOf returns b as memory of the device, for a client that is not of the CPU, once it is
// computed: cuda.MemOf(d, addr, n) makes of its address what copies.
func MemoryOf[T ccl.Number](b *Buffer) (ccl.Memory[T], error) {
	at, err := address[T](b, b.Wait)
	if err != nil {
		return nil, err
	}
	if b.own.c.OnHost() {
		return nil, fmt.Errorf("xla: %s is memory of the host: use Slice", b.shape.text)
	}
	return memory[T]{b, at}, nil
}

// Slice returns b itself as a slice, for a client of the CPU, once it is computed. It is good until
// b is freed or donated.
func Slice[T ccl.Number](b *Buffer) ([]T, error) {
	at, err := address[T](b, b.Wait)
	if err != nil {
		return nil, err
	}
	if !b.own.c.OnHost() {
		return nil, fmt.Errorf("xla: %s is memory of %s: use Get", b.shape.text, b.own.c.platform)
	}
	return unsafe.Slice(*(**T)(unsafe.Pointer(&at)), b.Len()), nil
}

// Buf waits until b is computed and returns it as collectives take it: they work in XLA's own
// memory, in place or not. Free or donate b when they are done with it.
func Buf[T ccl.Number](b *Buffer) (ccl.Buf, error) { return bufOf[T](b, b.Wait) }

// BufOn is Buf for calls on the stream s alone, which waits in place of the caller if the plugin has PJRT's Stream
// extension, as CUDA's has; otherwise the caller waits.
func BufOn[T ccl.Number](b *Buffer, s ccl.Stream) (ccl.Buf, error) {
	if s == nil {
		return ccl.Buf{}, errors.New("xla: BufOn of no stream")
	}
	return bufOf[T](b, func() error {
		c := b.own.c
		stream, ok := s.Handle()
		if c.OnHost() || !ok || !hasStreams(c.p.api) {
			return b.Wait()
		}
		h, err := b.own.use()
		if err != nil {
			return err
		}
		defer b.own.done()
		return failure("wait", b.shape.text, awaitOn(c.p.api, h, stream))
	})
}

func bufOf[T ccl.Number](b *Buffer, wait func() error) (ccl.Buf, error) {
	at, err := address[T](b, wait)
	if err != nil {
		return ccl.Buf{}, err
	}
	if b.own.c.OnHost() {
		return ccl.BufOf(unsafe.Slice(*(**T)(unsafe.Pointer(&at)), b.Len())), nil
	}
	return ccl.BufOfMemory[T](memory[T]{b, at}), nil
}

// address is the only way to a buffer's address: wait comes first.
func address[T ccl.Number](b *Buffer, wait func() error) (uintptr, error) {
	if b == nil {
		return 0, fmt.Errorf("xla: no buffer: %w", ErrClosed)
	}
	if k := kindFor[T](); k.t != b.shape.t {
		return 0, fmt.Errorf("xla: %s as elements of %s", b.shape.text, k.t)
	}
	if err := wait(); err != nil {
		return 0, err
	}
	h, err := b.own.use()
	if err != nil {
		return 0, err
	}
	defer b.own.done()
	at, said := addressOf(b.own.c.p.api, h)
	return at, failure("address", b.shape.text, said)
}
