package cpu

import (
	"context"
	"unsafe"
)

// AllToAllV on one host. Only the two ends of a message know its length, so each rank begins with a header
// in its slot: where its blocks begin and the last ends, as if they lay one behind another, and then the
// length of its largest block, or 0 if all of them lie right behind the header. The largest of all ranks' says
// how many rounds of pieces follow, as in AllToAll.

// headerWords is how many words a header has among n ranks.
func headerWords(n int) int { return n + 2 }

// slotsV reports whether headers fit: half of a slot is enough.
func (c *Comm) slotsV() bool { return 8*headerWords(c.n) <= c.local.inline/2 }

func (c *Comm) headerOf(r int, round uint32) []uint64 {
	return unsafe.Slice((*uint64)(c.local.data(r, round)), headerWords(c.n))
}

func (c *Comm) localAllToAllV(ctx context.Context, k *Call) *Fault {
	n, room := c.n, c.local.inline-8*headerWords(c.n)
	out, in := c.blocksV(k)
	copy(in.parts(c.me, c.me+1), out.parts(c.me, c.me+1))

	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	mine := c.headerOf(c.me, round)
	at, largest := 0, 0
	for r := range n {
		mine[r] = uint64(at)
		if r != c.me {
			size := len(out.parts(r, r+1))
			at, largest = at+size, max(largest, size)
		}
	}
	mine[n], mine[n+1] = uint64(at), uint64(largest)
	if at <= room {
		mine[n+1], largest = 0, 0
		behind := c.behindHeader(c.me, round)
		for r := range n {
			if r != c.me {
				put(unsafe.Add(behind, mine[r]), out.parts(r, r+1))
			}
		}
	}
	c.post(k, round)

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
		theirs, to := c.headerOf(r, round), in.parts(r, r+1)
		if theirs[c.me+1]-theirs[c.me] != uint64(len(to)) {
			own, other := loadRecord(c.local.call(c.me, k.place)), loadRecord(c.local.call(r, k.place))
			return c.stop(disagree(own, other, c.localRank(r)))
		}
		if theirs[n+1] == 0 {
			get(to, unsafe.Add(c.behindHeader(r, round), theirs[c.me]))
		} else {
			staged[r], largest = true, max(largest, int(theirs[n+1]))
		}
	}
	c.seen = round
	if largest == 0 {
		return nil
	}
	return c.piecesV(ctx, k, out, in, largest)
}

func (c *Comm) behindHeader(r int, round uint32) unsafe.Pointer {
	return unsafe.Add(c.local.data(r, round), 8*headerWords(c.n))
}

// piecesV moves the blocks of the staged ranks, of which the largest says how many rounds that takes.
func (c *Comm) piecesV(ctx context.Context, k *Call, out, in vector, largest int) *Fault {
	staged := c.exec.staged
	length, _ := c.layout(largest, c.n-1)
	length = min(length, largest)
	for at := 0; at < largest; at += length {
		round, to, f := c.begin(ctx, k, true)
		if f != nil {
			return f
		}
		if staged[c.me] {
			for r := range c.n {
				if r != c.me {
					put(unsafe.Add(to, other(c.me, r)*length), cut(out.parts(r, r+1), at, length))
				}
			}
		}
		c.post(k, round)
		for i := 1; i < c.n; i++ {
			r := (c.me + i) % c.n
			piece := cut(in.parts(r, r+1), at, length)
			if !staged[r] || len(piece) == 0 {
				continue
			}
			from, f := c.fetch(ctx, k, r, round, true)
			if f != nil {
				return f
			}
			c.receive(piece, unsafe.Add(from, other(r, c.me)*length), true)
		}
	}
	return nil
}

// cut is up to length bytes of b from at on.
func cut(b []byte, at, length int) []byte {
	return b[min(at, len(b)):min(at+length, len(b))]
}
