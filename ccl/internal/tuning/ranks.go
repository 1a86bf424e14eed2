package tuning

import (
	"math"
	"math/bits"
)

// The sizes of what the n ranks of a host share.
const (
	BesideFlag = 56 // bytes that lie in the cache line of a slot's flag
	// with two ranks, payloads from here on begin with a cache line of their own: see BehindFlag of
	// package region
	LineFrom = 512

	MaxSegments = 64 // of the ring of a rank, one of more than two: see RingSegments
	StageDepth  = 4  // slots of a rank's staging memory

	// Between two ranks, data of a call with a root are a stream of pieces, of which so many may be under way.
	StreamPiece = 16 << 10
	StreamDepth = 32

	// of what one rank alone sends: it lies where everything else does, in lines that stay in the
	// caches
	SmallPayload = 2 << 10

	PipeMax = 64 << 10 // bytes of the largest pipe

	slotTwo = 4 << 10
)

// SlotDepth is how many slots each of n ranks has, a power of two. A rank that only sends is at
// most that many rounds ahead of one that only receives. Two ranks, whose calls take less time than
// a cache line takes to and fro, would wait in each call with a quarter as many slots; with twice
// as many even 1 KiB in each would not stay in L1. More ranks often share cores, and a rank makes
// so many calls before it must let another one run: with 8 slots a loop of Broadcasts of 8 bytes
// took 3 to 5 times as long, with 4 and with 8 ranks on 2 cores.
func SlotDepth(n int) uint32 {
	switch {
	case n > 2 && n <= 8:
		return 64
	case n > 1 && n <= 64:
		return 32
	}
	return 8
}

// RingSegments is how many segments, of SlotRoom bytes each, the ring of each of n ranks has, a
// power of two. With half as many, a loop of Scatters of 32 KiB took 1.3 times as long with 4
// ranks.
func RingSegments(n int) int {
	switch {
	case n > 2 && n <= 8:
		return MaxSegments
	case n <= 64:
		return 16
	}
	return 8
}

// SentTo is how many bytes a rank that alone sends puts into its slot or ring.
func SentTo(n int) int {
	if n > 2 && n <= 8 {
		return 32 << 10
	}
	return Inline(n)
}

// SentMost is how many bytes of a vector go through a ring in pieces, where one of 3 to 8 ranks sends alone.
func (l Layout) SentMost(n int) int {
	if n > 2 && n <= 8 && l.Ring > 0 {
		return math.MaxInt
	}
	return SentTo(n)
}

// ReduceAtRootTo is how many bytes of a Reduce go through the rings of 3 to 8 ranks that outnumber
// their cores: the root reduces all that the others send. Otherwise each reduces a part. On two
// cores of a Zen 4, 16 KiB of 4 ranks took 0.28 of the time by it and 128 KiB 0.6; with 8 ranks 8
// KiB took 0.2, 32 KiB 0.45 and 128 KiB the same.
func ReduceAtRootTo(n int) int { return (512 << 10) / n }

// SentRing is the size, in bytes, of a rank's ring for the pieces that it sends alone, with n ranks
// on the host. It holds those that may be under way and one more, since no piece goes on behind the
// end. With more than two ranks, a rank has another ring, and this one only if it is to be larger
// than L2.
func (l Layout) SentRing(n int) int {
	switch {
	case n == 2:
		return max((StreamDepth+1)*StreamPiece, l.Ring)
	case n > 2 && n <= 8 && l.Ring > 0:
		return max(int(SlotDepth(n)+1)*SentTo(n), l.Ring)
	}
	return 0
}

// CallsKept is how many of a rank's last calls the others can see, a power of two: more than a rank
// can be ahead of them, in rounds.
func CallsKept(n int) uint32 { return 2 * SlotDepth(n) }

// Inline is how many bytes of each of n ranks lie in the slots, all of which each rank reads: more
// with few ranks, for which that costs less than the rounds that it saves. Two ranks have memory to
// work on in place from there on.
func Inline(n int) int {
	switch {
	case n == 3 || n == 4:
		return 8 << 10
	case n > 4 && n <= 8:
		return 4 << 10
	}
	return 2 << 10
}

// SlotRoom is how many bytes a slot has beside its flag's cache line: with two ranks what AllReduce
// uses. With more, it is the size of a segment of the ring in which the slots' data lie.
func SlotRoom(n int) int {
	if n == 2 {
		return slotTwo
	}
	return Inline(n)
}

// StageChunk is how much each of n ranks stages at once: 128 KiB stay in its L2, and the whole host
// stages at most 16 MiB, or 4 KiB a chunk, or 16 bytes for each rank, the largest element.
func StageChunk(n int) int {
	share := max(4<<10, min(128<<10, (16<<20)/(n*StageDepth)))
	return max(share&^4095, (16*n+4095)&^4095)
}

// StageBytes is the staging memory of each of n ranks.
func StageBytes(n int) int { return StageChunk(n) * StageDepth }

// PipeSize is the size of each pipe among n ranks: if all of them talk to each other, the pipes
// take 4 MiB, or 4 KiB each.
func PipeSize(n int) int {
	c := (4 << 20) / max(n*n, 1)
	return max(4<<10, min(PipeMax, 1<<(bits.Len(uint(c))-1)))
}
