package harness

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// buffer is memory of one kind. What the harness writes to the first n bytes the calls see once they
// are up; what calls have written there is in bytes once they are down. Of host memory bytes is
// the buffer itself, and there is nothing to move.
type buffer interface {
	bytes() []byte
	up(n int) error
	down(n int) error
	free()
}

// allocate makes a buffer of n bytes, aligned for every type.
func (s *session) allocate(n int) (buffer, error) {
	if s.o.Mem == "host" {
		return s.onHost(n)
	}
	return s.onDevice(n)
}

// onHost makes memory of Go's, or with -R 1 what all ranks of the host map.
func (s *session) onHost(n int) (buffer, error) {
	if s.o.Windows {
		return nil, errors.New("-R 2 -mem host: windows are made of device memory; give -R 1, or leave -mem out where there is a device")
	}
	if !s.o.Registered {
		return &hostBuffer{b: alloc(n)}, nil
	}
	words, err := ccl.MakeSlice[uint64](s.ctx, s.lanes[0].c, n/8+1)
	if err != nil {
		return nil, fmt.Errorf("-R 1: %w", err)
	}
	return &hostBuffer{b: unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n), words: words}, nil
}

type hostBuffer struct {
	b     []byte
	words []uint64 // as the engine gave it; nil of Go memory
}

func (h *hostBuffer) bytes() []byte  { return h.b }
func (h *hostBuffer) up(int) error   { return nil }
func (h *hostBuffer) down(int) error { return nil }
func (h *hostBuffer) free()          { ccl.FreeSlice(h.words) }

// alloc makes n bytes, aligned for every type.
func alloc(n int) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// as reads memory as elements.
func as[T ccl.Number](b []byte) []T {
	var z T
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(z)))
}

// bytesOf is as, back.
func bytesOf[T ccl.Number](s []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z)))
}

// fill makes every byte of b 0x3f: an ordinary number of every type, 0.75 as a float.
// Not zeros: processors store those faster than other numbers.
func fill(b []byte) {
	if len(b) == 0 {
		return
	}
	b[0] = 0x3f
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// sweepBytes is more than caches hold: reading so much leaves nothing else there.
const sweepBytes = 256 << 20

// flush empties the caches of this core, and what it shares of theirs, as far as a
// program can. Nil memory, without -flush, is nothing to do.
func flush(sweep []uint64) {
	for i := 0; i < len(sweep); i += 8 {
		sweep[i]++
	}
}

// mulOver is a*b, or the largest int.
func mulOver(a, b int) int {
	if b > 0 && a > math.MaxInt/b {
		return math.MaxInt
	}
	return a * b
}
