package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/tuning"
)

// A region holds what the ranks of one Comm on one host share:
//
//	4 KiB         the abort word, how many have left, how many sleep
//	per rank      control: state, where its staging memory and its pipes are,
//	              its last calls; then slots of (flag, data)
//
// Calls run in rounds. In each round a rank posts: it writes data into its slot of
// that round, then the slot's flag, round<<32 | hash of the call. Others wait for
// the flag and read the data. A flag of the right round with another hash is a
// mismatched call, found at no cost. Slots are used in turn; who posts a round has
// finished reading all rounds two before it, so a slot is free again once every
// rank has posted the round depth-2 after it.
const (
	regionHead  = 4 << 10
	rankHead    = 192 // what a rank has before its last calls
	recordBytes = int(unsafe.Sizeof(Record{}))
)

type region struct {
	off    uint64
	mem    []byte
	base   unsafe.Pointer // &mem[0]
	n      int            // ranks
	depth  uint32         // tuning.SlotDepth(n)
	kept   uint32         // tuning.CallsKept(n)
	inline int            // tuning.Inline(n)
	whole  int            // how many bytes of AllReduce lie in the slots
	slot   int            // bytes of a slot
	rank   int            // bytes of a rank
	slots  int            // where its slots begin
}

func newRegion(off uint64, mem []byte, n int) *region {
	return &region{off: off, mem: mem, base: unsafe.Pointer(&mem[0]), n: n, depth: tuning.SlotDepth(n), kept: tuning.CallsKept(n),
		inline: tuning.Inline(n), whole: tuning.Inline(n), slot: 64 + tuning.SlotRoom(n), rank: rankBytes(n), slots: slotsAt(n)}
}

func slotsAt(n int) int { return (rankHead + int(tuning.CallsKept(n))*recordBytes + 63) &^ 63 }

func rankBytes(n int) int { return slotsAt(n) + int(tuning.SlotDepth(n))*(64+tuning.SlotRoom(n)) }

func regionBytes(n int) int { return regionHead + n*rankBytes(n) }

func (g *region) at(off int) unsafe.Pointer { return unsafe.Add(g.base, off) }

func (g *region) word(off int) *atomic.Uint64 { return (*atomic.Uint64)(g.at(off)) }

// abort is 0 until the Comm has failed on some rank of the host, and then 1 + the first of them.
func (g *region) abort() *atomic.Uint64 { return g.word(0) }

// left counts the ranks that have closed the Comm.
func (g *region) left() *atomic.Uint64 { return g.word(128) }

// sleepers is how many ranks of the host sleep until they are rung: see bell.
func (g *region) sleepers() *atomic.Uint64 { return g.word(256) }

// state is stateOpen, stateClosed or stateLeft.
func (g *region) state(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank) }

// agreed is the last Shrink of the Comm that r has returned from, twice, and gaveUp if in vain.
func (g *region) agreed(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 8) }

// stage is the offset of r's staging memory, 0 while it has none.
func (g *region) stage(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 64) }

// waits is, while r sleeps in a call, that call<<32 | 1 + the rank it waits for; else 0.
func (g *region) waits(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 72) }

// split is the region that r has made for the last Comm that was split from this one with r as the first of its ranks on
// this host; 0 if that was refused. splitSize is how many ranks of the host that Comm is of, joined how many of them have it.
func (g *region) split(r int) *atomic.Uint64     { return g.word(regionHead + r*g.rank + 80) }
func (g *region) splitSize(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 88) }
func (g *region) joined(r int) *atomic.Uint64    { return g.word(regionHead + r*g.rank + 96) }

// bell says, while r sleeps, whose post is to wake it: see bell.
func (g *region) bell(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 104) }

// row is the offset of the table of r's outgoing pipes, 0 while it has none.
func (g *region) row(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 128) }

// entered is the collective that r is in or has last been in: its number<<32 | the
// hash of all up to it.
func (g *region) entered(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 184) }

// call is what r says of call seq, while it is one of its last.
func (g *region) call(r int, seq uint64) *Record {
	return (*Record)(g.at(regionHead + r*g.rank + rankHead + int(uint32(seq)&(g.kept-1))*recordBytes))
}

// touches is 1 while r touches the memory of others: see Comm.mayTouch.
func (g *region) touches(r int) *atomic.Uint64 { return g.word(regionHead + r*g.rank + 136) }

func (g *region) slotOf(r int, round uint32) int {
	return regionHead + r*g.rank + g.slots + int(round&(g.depth-1))*g.slot
}

func (g *region) flag(r int, round uint32) *uint64 { return (*uint64)(g.at(g.slotOf(r, round))) }

func (g *region) data(r int, round uint32) unsafe.Pointer { return g.at(g.slotOf(r, round) + 8) }

// payload is where n bytes of r's data lie that lie together: beside the flag, or behind it.
func (g *region) payload(r int, round uint32, n int) unsafe.Pointer {
	return g.at(g.slotOf(r, round) + g.behindFlag(n))
}

// behindFlag is where in a slot n bytes begin.
func (g *region) behindFlag(n int) int { return tuning.BehindFlag(g.n, n) }

// turn is the rank whose memory takes r's data the u-th time that it is used: of two ranks, one and the other
// in turn. So a rank writes where it has read the last time, having claimed those lines (see receive): they
// go between the caches once, not twice.
func (g *region) turn(r int, u uint32) int {
	if g.n == 2 {
		return r ^ int(u&1)
	}
	return r
}

const (
	stateOpen uint64 = iota
	stateClosed
	stateLeft // closed after a failure: what it was says more
)
