package cpu

import (
	"context"
	"unsafe"
)

// AllToAllV on one host. Only the two ends of a message know its length, so each rank begins with a header
// in its slot: where its blocks begin and the last ends, as if they lay one behind another, and then the
// length of its largest block, or 0 if all of them lie right behind the header. Else the first piece of each lies
// in staging memory already, and the largest of all ranks' says how many rounds of pieces follow, as in AllToAll.

// Two ranks have one block each for the other, so one word says it all, and leaves more of the flag's cache line to
// the block: twice its length, and 1 if it is in staging memory.

// headerWords is how many words a header has among n ranks.
func headerWords(n int) int {
	if n == 2 {
		return 1
	}
	return n + 2
}

// lengthOf reads a header: where the block for this rank begins, its length, and the length of the largest.
func (c *Comm) lengthOf(theirs []uint64) (at, length uint64, largest int) {
	if c.n == 2 {
		length = theirs[0] >> 1
		return 0, length, int(length * (theirs[0] & 1))
	}
	at = theirs[c.me]
	return at, theirs[c.me+1] - at, int(theirs[c.n+1])
}

// slotsV reports whether headers fit: half of a slot is enough.
func (c *Comm) slotsV() bool { return 8*headerWords(c.n) <= c.local.inline/2 }

func (c *Comm) headerOf(r int, round uint32) []uint64 {
	return unsafe.Slice((*uint64)(c.local.data(r, round)), headerWords(c.n))
}

func (c *Comm) localAllToAllV(ctx context.Context, k *Call) *Fault {
	n, room := c.n, c.local.inline-8*headerWords(c.n)
	out, in := c.blocksV(k)
	at, largest := 0, 0
	for r := range n {
		if r != c.me {
			size := len(out.parts(r, r+1))
			at, largest = at+size, max(largest, size)
		}
	}
	if at <= room {
		largest = 0
	}
	length, _ := c.layout(c.chunk, n-1) // of a piece

	round, f := c.open(ctx, k, largest > 0)
	if f != nil {
		return f
	}
	mine, behind := c.headerOf(c.me, round), c.behindHeader(c.me, round)
	if largest > 0 {
		if f := c.stageV(round, out, 0, length); f != nil {
			return f
		}
	}
	if n == 2 {
		b := out.parts(1-c.me, 2-c.me)
		mine[0] = uint64(len(b)) << 1
		if largest > 0 {
			mine[0]++
		} else {
			put(behind, b)
		}
	} else {
		c.putHeader(mine, behind, out, largest)
	}
	c.post(k, round)

	keep, kept := out.parts(c.me, c.me+1), in.parts(c.me, c.me+1)
	copy(kept, cut(keep, 0, length))
	staged := c.exec.staged[:0] // by rank, whether its blocks come in pieces
	for r := range n {
		staged = append(staged, r == c.me && largest > 0)
	}
	c.exec.staged = staged
	for i := 1; i < n; i++ {
		r := (c.me + i) % n
		if f := c.await(ctx, k, r, round); f != nil {
			return f
		}
		to := in.parts(r, r+1)
		at, size, most := c.lengthOf(c.headerOf(r, round))
		if size != uint64(len(to)) {
			own, other := loadRecord(c.local.call(c.me, k.place)), loadRecord(c.local.call(r, k.place))
			return c.stop(disagree(own, other, c.localRank(r)))
		}
		if most == 0 {
			get(to, unsafe.Add(c.behindHeader(r, round), at))
			continue
		}
		staged[r], largest = true, max(largest, most)
		if f := c.unstageV(r, round, cut(to, 0, length), length); f != nil {
			return f
		}
	}
	c.seen = round
	for at = length; at < largest; at += length {
		if f := c.pieceV(ctx, k, out, in, at, length); f != nil {
			return f
		}
		copy(cut(kept, at, length), cut(keep, at, length))
	}
	for ; at < len(keep); at += length {
		copy(cut(kept, at, length), cut(keep, at, length))
	}
	return nil
}

// putHeader writes the header of more than two ranks, and the blocks behind it unless the largest is given: they are in
// staging memory.
func (c *Comm) putHeader(mine []uint64, behind unsafe.Pointer, out vector, largest int) {
	at := 0
	for r := range c.n {
		mine[r] = uint64(at)
		if r == c.me {
			continue
		}
		b := out.parts(r, r+1)
		if largest == 0 {
			put(unsafe.Add(behind, at), b)
		}
		at += len(b)
	}
	mine[c.n], mine[c.n+1] = uint64(at), uint64(largest)
}

func (c *Comm) behindHeader(r int, round uint32) unsafe.Pointer {
	return unsafe.Add(c.local.data(r, round), 8*headerWords(c.n))
}

// stageV stages length bytes, from at on, of the blocks of the others.
func (c *Comm) stageV(round uint32, out vector, at, length int) *Fault {
	to, f := c.stage(c.me, round)
	if f != nil {
		return f
	}
	for r := range c.n {
		if r != c.me {
			put(unsafe.Add(to, other(c.me, r)*length), cut(out.parts(r, r+1), at, length))
		}
	}
	return nil
}

// unstageV receives what rank r has staged in round.
func (c *Comm) unstageV(r int, round uint32, piece []byte, length int) *Fault {
	from, f := c.stage(r, round)
	if f == nil {
		c.receive(piece, unsafe.Add(from, other(r, c.me)*length), true)
	}
	return f
}

// pieceV is a round in which the staged ranks move what lies from at on in their blocks.
func (c *Comm) pieceV(ctx context.Context, k *Call, out, in vector, at, length int) *Fault {
	staged := c.exec.staged
	round, f := c.open(ctx, k, true)
	if f != nil {
		return f
	}
	if staged[c.me] {
		if f := c.stageV(round, out, at, length); f != nil {
			return f
		}
	}
	c.post(k, round)
	for i := 1; i < c.n; i++ {
		r := (c.me + i) % c.n
		piece := cut(in.parts(r, r+1), at, length)
		if !staged[r] || len(piece) == 0 {
			continue
		}
		if f := c.await(ctx, k, r, round); f != nil {
			return f
		}
		if f := c.unstageV(r, round, piece, length); f != nil {
			return f
		}
	}
	return nil
}

// cut is up to length bytes of b from at on.
func cut(b []byte, at, length int) []byte {
	return b[min(at, len(b)):min(at+length, len(b))]
}
