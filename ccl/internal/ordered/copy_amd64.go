//go:build amd64 && !noasm && !race

package ordered

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/machine"
)

// stringFrom is from how many bytes on REP MOVSB beats the loops of Go's memmove.
const stringFrom = 1 << 10

// Copy copies n bytes. dst and src must not overlap.
func Copy(dst, src unsafe.Pointer, n int) {
	if n >= stringFrom && moves {
		moveString(dst, src, n)
		return
	}
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}

// moves says that REP MOVSB is the fastest copy here.
var moves = machine.CPU.MoveString

// moveString is REP MOVSB.
//
//go:noescape
func moveString(dst, src unsafe.Pointer, n int)
