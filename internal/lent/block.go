package lent

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/backoff"
)

// Block is a run of elements in memory that a runtime has lent, or a part of one.
type Block struct {
	of    *Resource
	first uintptr // offset from the address of the whole, in bytes
	count int
	size  int // bytes of an element
	part  bool
}

// NewBlock describes the whole of a resource: count elements of size bytes each. Memory of no elements has the address 0.
func NewBlock(of *Resource, count, size int) Block {
	return Block{of: of, count: count, size: size}
}

// Len is the number of elements.
func (b *Block) Len() int { return b.count }

// Bytes is the size of n elements.
func (b *Block) Bytes(n int) int { return n * b.size }

// Ptr is the address; ok is false once the memory has been given back.
func (b *Block) Ptr() (p uintptr, ok bool) {
	if p, ok = b.of.Handle(); !ok {
		return 0, false
	}
	return p + b.first, true
}

// Use is the address, for a call.
func (b *Block) Use() (uintptr, error) {
	p, err := b.of.Use()
	return p + b.first, err
}

// Fits is an error if n elements, which call is to move, are more than b has.
func (b *Block) Fits(n int, call string) error {
	if n > b.count {
		return fmt.Errorf("%s: %s of %d elements, but the memory has %d", b.of.pkg, call, n, b.count)
	}
	return nil
}

// Part is elements i to j, j excluded, of memory that is still lent.
func (b *Block) Part(i, j int) (Block, error) {
	if _, err := b.of.Use(); err != nil {
		return Block{}, err
	}
	if i < 0 || j < i || j > b.count {
		return Block{}, fmt.Errorf("%s: [%d:%d] of memory of %d elements", b.of.pkg, i, j, b.count)
	}
	return Block{of: b.of, first: b.first + uintptr(i*b.size), count: j - i, size: b.size, part: true}, nil
}

// Free gives the whole back with free, once. A part cannot be freed.
func (b *Block) Free(free func(p uintptr) error) error {
	if b.part {
		return fmt.Errorf("%s: only whole memory can be freed, not a part; the whole was made at %s", b.of.pkg, b.of.Made)
	}
	return b.of.Close(func(p uintptr) error {
		if p == 0 {
			return nil
		}
		return free(p)
	})
}

// Elements is b as a slice that the host may use; nil once the memory has been given back. The address is not of Go's
// memory, and may be kept as a pointer.
func Elements[T any](b *Block) []T {
	p, ok := b.Ptr()
	if !ok || b.count == 0 {
		return nil
	}
	return unsafe.Slice(*(**T)(unsafe.Pointer(&p)), b.count)
}

// pollMax is the longest sleep between two queries.
const pollMax = 200 * time.Microsecond

// Poll calls query until it says that the work is done, or ctx ends. It sleeps between the calls, longer each time, up to
// 200 microseconds.
func Poll(ctx context.Context, query func() (done bool, err error)) error {
	wait := backoff.Sleep{First: time.Microsecond, Most: pollMax}
	for {
		if done, err := query(); done || err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		wait.Next()
	}
}
