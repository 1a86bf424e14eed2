package campaign

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"unsafe"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/race"
)

// guard is how many bytes on each side of a slice must stay as they are.
const guard = 64

// A piece is memory of one slice, with its guards.
type piece struct {
	all  []byte
	from int // where the slice begins
	n    int
}

// whole is a byte that nobody writes: the guards hold it.
const whole = 0xA5

// newPiece returns n bytes for elements of size bytes: in Go's memory, or in what MakeSlice has given this rank; at any element, and
// where the checks of pointers allow it at any byte.
func newPiece(own *rand.Rand, arena *arena, n, size int) piece {
	off := guard + size*own.IntN(9)
	if !race.Enabled && own.IntN(6) == 0 {
		off += own.IntN(size)
	}
	p := piece{from: off, n: n}
	total := off + n + guard
	if own.IntN(3) == 0 {
		p.all = arena.take(total)
	}
	if p.all == nil {
		words := make([]uint64, total/8+1)
		p.all = unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), total)
	}
	for i := range p.all {
		p.all[i] = whole
	}
	return p
}

// sliceOf is the slice in p, whose elements are of type T.
func sliceOf[T ccl.Element](p piece) []T {
	if p.n == 0 {
		return []T{}
	}
	var zero T
	return unsafe.Slice((*T)(unsafe.Pointer(&p.all[p.from])), p.n/int(unsafe.Sizeof(zero)))
}

// intact says that nothing beside the slice was written.
func (p piece) intact() bool {
	for _, side := range [][]byte{p.all[:p.from], p.all[p.from+p.n:]} {
		for _, b := range side {
			if b != whole {
				return false
			}
		}
	}
	return true
}

// bytesOf is the memory of s.
func bytesOf[T ccl.Element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(zero)))
}

// differ says where got is not want, by their bits.
func differ[T ccl.Element](got, want []T) string {
	if bytes.Equal(bytesOf(got), bytesOf(want)) {
		return ""
	}
	for i := range want {
		if g, w := bytesOf(got[i:i+1]), bytesOf(want[i:i+1]); !bytes.Equal(g, w) {
			return fmt.Sprintf("element %d of %d is %v (%x), not %v (%x)", i, len(want), got[i], g, want[i], w)
		}
	}
	return fmt.Sprintf("%d elements, not %d", len(got), len(want))
}

// An arena is memory of MakeSlice, taken from the front, and begun anew with each step.
type arena struct {
	memory []byte
	used   int
}

// arenaBytes is how much each rank has.
const arenaBytes = 4 << 20

func (a *arena) take(n int) []byte {
	n = (n + 7) &^ 7
	if a == nil || a.used+n > len(a.memory) {
		return nil
	}
	a.used += n
	return a.memory[a.used-n : a.used : a.used]
}
