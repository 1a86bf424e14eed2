//go:build amd64 && !noasm && !race

// Package ordered has the stores that publish, so that a rank that sees what they store sees all
// that was written before; the copies of what they publish; and a flag that costs its goroutine a
// plain store, where the rare other one that looks at it pays for both: by membarrier(2), where
// there is that.
package ordered

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/machine"
)

// Store stores v after all stores before it. x86 keeps the order of stores, so a plain one will do,
// where atomic.StoreUint64 is an XCHG, 5 to 10 ns dearer. So does Go's compiler: to it each store
// needs the memory that the one before has left (package ssa), also where this is inlined, as
// TestLitmusMessage finds.
func Store(p *uint64, v uint64) { *p = v }

// Post is Store, and asks for the cache line of next, which will be written soon: its
// reader has a copy, and to take that away takes as long as to send a flag.
//
//go:noescape
func Post(p *uint64, v uint64, next *uint64)

// Claim asks for the cache lines of the n bytes at p as lines that this core will write.
//
//go:noescape
func Claim(p unsafe.Pointer, n int)

// Fetch asks for the cache lines of the n bytes at p as lines that this core will read.
//
//go:noescape
func Fetch(p unsafe.Pointer, n int)

// Loaded keeps what was loaded before it, by whatever loads, before the atomic loads that follow:
// here all loads are in order.
func Loaded() {}

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
