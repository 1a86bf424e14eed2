//go:build amd64 && !noasm && !race

package ordered

import (
	"encoding/binary"
	"unsafe"
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

// moves says that this CPU copies best by REP MOVSB, also from and to lines that another core has, and that
// Go's memmove does not know: it does so on Intel's CPUs alone.
var moves = movesWell()

func movesWell() bool {
	const (
		erms = 1 << 9 // leaf 7, EBX
		fsrm = 1 << 4 // leaf 7, EDX
	)
	if last, _, _, _ := cpuid(0); last < 7 || vendor() != "AuthenticAMD" {
		return false
	}
	_, b, _, d := cpuid(7)
	return b&erms != 0 && d&fsrm != 0
}

// Intel says that this is a CPU of theirs: a cache line that another core has is further away there than on AMD's, next
// to what the cores do in themselves, so that other ways are the fastest.
var Intel = vendor() == "GenuineIntel"

func vendor() string {
	_, b, c, d := cpuid(0)
	var name []byte
	for _, part := range []uint32{b, d, c} {
		name = binary.LittleEndian.AppendUint32(name, part)
	}
	return string(name)
}

// cpuid is CPUID of a leaf, subleaf 0.
//
//go:noescape
func cpuid(leaf uint32) (a, b, c, d uint32)

// moveString is REP MOVSB.
//
//go:noescape
func moveString(dst, src unsafe.Pointer, n int)
