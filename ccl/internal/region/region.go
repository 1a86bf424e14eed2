package region

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// A region holds what the ranks of one Comm on one host share:
//
//	4 KiB         the abort word, how many have left, how many sleep, whether they are crowded, how many are leaving
//	per rank      control: state, where its staging memory, its ring of what it sends alone and its pipes are,
//	              its last calls; then slots of (flag, data), and with
//	              more than two ranks a ring for what does not fit there
//
// Calls run in rounds. In each round a rank posts: it writes data into its slot of that round, into
// the other's (two ranks may swap them), or into its ring, then the slot's flag, round<<32 | hash
// of the call. Others wait for the flag and read the data. A flag of the right round with another
// hash is a mismatched call, found at no cost. Slots are used in turn. A rank that posts a round
// has finished reading all rounds two before it, so a slot is free again once every rank has posted
// the round depth-2 after it.
const (
	regionHead  = 4 << 10
	recordBytes = int(unsafe.Sizeof(call.Record{}))
)

type Region struct {
	Off     uint64
	mem     []byte
	base    unsafe.Pointer // &mem[0]
	N       int            // ranks
	Depth   uint32         // tuning.SlotDepth(n)
	Kept    uint32         // tuning.CallsKept(n)
	Inline  int            // tuning.Inline(n)
	Whole   int            // how many bytes of AllReduce lie in the slots
	Crowded bool           // the ranks outnumber their processors, as Crowding says
	Layout  tuning.Layout  // what the ranks of the host have agreed on
	slot    int            // bytes of a slot
	rank    int            // bytes of a rank
	slots   int            // where its slots begin
	ring    int            // where its ring begins, of more than two ranks
}

// New returns the region of n ranks in mem, which lies at off in the memory of the host.
func New(off uint64, mem []byte, n int) *Region {
	g := &Region{Off: off, mem: mem, base: unsafe.Pointer(&mem[0]), N: n, Depth: tuning.SlotDepth(n),
		Kept:   tuning.CallsKept(n),
		Inline: tuning.Inline(n), Whole: tuning.Inline(n), slot: slotBytes(n), rank: rankBytes(n), slots: slotsAt(n),
		ring: slotsAt(n) + int(tuning.SlotDepth(n))*slotBytes(n)}
	if inject.Wrong("region.slots") { // what a rank posts reaches into its next slot
		g.slot = g.slot / 2 &^ 63
	}
	return g
}

func slotsAt(n int) int { return (wordsBytes + int(tuning.CallsKept(n))*recordBytes + 63) &^ 63 }

func slotBytes(n int) int {
	if n == 2 {
		return 64 + tuning.SlotRoom(n)
	}
	return 64
}

func rankBytes(n int) int {
	size := slotsAt(n) + int(tuning.SlotDepth(n))*slotBytes(n)
	if n > 2 {
		size += tuning.RingSegments(n) * tuning.SlotRoom(n)
	}
	return size
}

// Bytes returns the size of the region of n ranks.
func Bytes(n int) int { return regionHead + n*rankBytes(n) }

func (g *Region) at(off int) unsafe.Pointer { return unsafe.Add(g.base, off) }

// Call is what r says of call seq, while it is one of its last.
func (g *Region) Call(r int, seq uint64) *call.Record {
	return (*call.Record)(g.at(regionHead + r*g.rank + wordsBytes + int(uint32(seq)&(g.Kept-1))*recordBytes))
}

// Records are the places of r's last calls: what Call finds, kept by a rank that makes calls.
func (g *Region) Records(r int) []call.Record { return unsafe.Slice(g.Call(r, 0), g.Kept) }

// slotOf is r's slot of round, which begins with its flag.
func (g *Region) slotOf(r int, round uint32) unsafe.Pointer {
	return unsafe.Add(g.base, regionHead+r*g.rank+g.slots+int(round&(g.Depth-1))*g.slot)
}

// Flag returns the flag of r's slot of round.
func (g *Region) Flag(r int, round uint32) *uint64 { return (*uint64)(g.slotOf(r, round)) }

// Flags are where one rank's flags are: what Flag finds, kept by a rank that posts.
type Flags struct {
	first unsafe.Pointer
	size  uint32
	mask  uint32
}

// Flags are rank r's.
func (g *Region) Flags(r int) Flags {
	return Flags{unsafe.Pointer(g.Flag(r, 0)), uint32(g.slot), g.Depth - 1}
}

// At is the flag of the rank's slot of round.
func (l *Flags) At(round uint32) *uint64 {
	return (*uint64)(unsafe.Add(l.first, (round&l.mask)*l.size))
}

// Data returns where r's slot of round has room for data, right behind the flag.
func (g *Region) Data(r int, round uint32) unsafe.Pointer { return unsafe.Add(g.slotOf(r, round), 8) }

// BehindFlag is where in a slot a payload of so many bytes begins, if it lies there. With two
// ranks, payloads of tuning.LineFrom bytes and more begin with a cache line of their own, and
// smaller ones in the flag's: on an Emerald Rapids VM an AllToAll of 4 KiB took 0.81 us with blocks
// right behind the flag and 0.70 in lines of their own; one of 512 bytes took 0.44 and 0.47, and
// 0.41 at byte 32.
func BehindFlag(bytes int) int {
	switch {
	case bytes <= tuning.BesideFlag:
		return 8
	case bytes < tuning.LineFrom:
		return 32
	}
	return 64
}

// Payload is where n bytes of r's data lie that lie together: beside the flag, or behind it, or of
// more than two ranks in r's ring, where Place has said.
func (g *Region) Payload(r int, round uint32, n int) unsafe.Pointer {
	if g.N == 2 || n <= tuning.BesideFlag {
		return unsafe.Add(g.slotOf(r, round), BehindFlag(n))
	}
	return g.Placed(r, round)
}

// Place says that the data of round of r, one of more than two ranks, lie at off in its ring.
func (g *Region) Place(r int, round uint32, off int) {
	*(*uint64)(g.Data(r, round)) = uint64(regionHead + r*g.rank + g.ring + off)
}

// Placed is where Place has said that r's data of round lie.
func (g *Region) Placed(r int, round uint32) unsafe.Pointer {
	return g.at(int(*(*uint64)(g.Data(r, round))))
}

// Turn returns the rank whose memory takes r's data the u-th time that it is used: with two ranks, one and the other in
// turn. So a rank writes where it has read the last time, and has claimed those lines (see receive in package rounds):
// they go between the caches once, not twice.
func (g *Region) Turn(r int, u uint32) int {
	if g.N == 2 {
		return r ^ int(u&1)
	}
	return r
}

// Whether the ranks of a host outnumber their processors.
const (
	RanksFit uint64 = 1 + iota
	RanksCrowd
)

const (
	StateOpen uint64 = iota
	StateClosed
	StateLeft // closed after a failure: what it was says more
)

// What a rank says of its leaving.
const (
	IsIn      uint64 = 1 + iota // it has the Comm that was split off
	WaitsOut                    // it writes here no more, and waits until all others have closed it or ended
	IsOut                       // it is counted in Left, by itself or by another
	ListedOut                   // as WaitsOut, and only a process that takes its pending exit counts it: see package plane
)
