package shm

import "sync/atomic"

// space hands out the offsets of a memfd. It lies in the memory that all processes of a host share,
// and a process may be killed between any two of its steps: so each free range is one word, which
// is taken, cut and put back by compare-and-swap. A process that dies with a range in hand loses
// that range, and nothing else.
//
// A word says all there is to say of its range. If a compare-and-swap finds it, the range is free at that moment,
// whatever has happened since the word was read.
type space struct {
	next atomic.Uint64             // from here on nothing has been handed out
	free [freeRanges]atomic.Uint64 // ranges before it; 0: no range
	gone atomic.Uint64             // how many ranges have been given back
}

// freeRanges is how many ranges are known as free at a time. What does not fit waits in the process that gave it back.
const freeRanges = 512

// Range is a range of whole pages: the number of its first page<<rangeBits | how many there are.
type Range uint64

const rangeBits = 28 // 1 TiB in pages of 4 KiB

func RangeOf(off, size uint64) Range {
	return Range(off/uint64(Page)<<rangeBits | size/uint64(Page))
}

func (r Range) First() uint64 { return uint64(r >> rangeBits) }
func (r Range) Pages() uint64 { return uint64(r & (1<<rangeBits - 1)) }
func (r Range) end() uint64   { return r.First() + r.Pages() }

// touches reports whether r and q lie side by side.
func (r Range) touches(q Range) bool { return r.end() == q.First() || q.end() == r.First() }

// Overlaps reports whether r and q have a page in common.
func (r Range) Overlaps(q Range) bool { return r.First() < q.end() && q.First() < r.end() }

// and is r and q, which lie side by side.
func (r Range) and(q Range) Range {
	return Range(min(r.First(), q.First())<<rangeBits | (r.Pages() + q.Pages()))
}

// take hands out size bytes, whole pages: of the smallest free range that is large enough, or else what has never been
// handed out.
func (s *space) take(size uint64) (off uint64, ok bool) {
	n := size / uint64(Page)
	for {
		var best Range
		at := -1
		for i := range s.free {
			r := Range(s.free[i].Load())
			if r.Pages() >= n && (at < 0 || r.Pages() < best.Pages()) {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		var rest Range
		if best.Pages() > n {
			rest = Range((best.First()+n)<<rangeBits | (best.Pages() - n))
		}
		if s.free[at].CompareAndSwap(uint64(best), uint64(rest)) {
			return best.First() * uint64(Page), true
		}
	}
	for {
		next := s.next.Load()
		if size > memfdBytes-next {
			return 0, false
		}
		if s.next.CompareAndSwap(next, next+size) {
			return next, true
		}
	}
}

// give takes a range back. It returns what there is no room to note: 0, or the range with the free
// ones beside it, which the caller has then in hand.
func (s *space) give(r Range) (rest Range) {
	for range 8 { // more would only be needed if others always gave back its neighbors at the same moment
		r = s.join(r)
		if end := r.end() * uint64(Page); s.next.Load() == end && s.next.CompareAndSwap(end, r.First()*uint64(Page)) {
			return 0
		}
		at := s.note(r)
		if at < 0 {
			return r
		}
		if !s.hasNeighbor(r) || !s.free[at].CompareAndSwap(uint64(r), 0) {
			return 0
		}
	}
	if s.note(r) < 0 {
		return r
	}
	return 0
}

// note writes r down, and returns where; -1 if there is no room.
func (s *space) note(r Range) int {
	for i := range s.free {
		if s.free[i].Load() == 0 && s.free[i].CompareAndSwap(0, uint64(r)) {
			return i
		}
	}
	return -1
}

// join is r with the free ranges beside it, which are taken out.
func (s *space) join(r Range) Range {
	for i := range s.free {
		q := Range(s.free[i].Load())
		if q != 0 && q.touches(r) && s.free[i].CompareAndSwap(uint64(q), 0) {
			r = r.and(q)
		}
	}
	return r
}

// hasNeighbor reports whether what lies beside r is free.
func (s *space) hasNeighbor(r Range) bool {
	if s.next.Load() == r.end()*uint64(Page) {
		return true
	}
	for i := range s.free {
		if q := Range(s.free[i].Load()); q != 0 && q.touches(r) {
			return true
		}
	}
	return false
}

// ranges are those that are free now, in no order.
func (s *space) ranges() (list []Range) {
	for i := range s.free {
		if r := Range(s.free[i].Load()); r != 0 {
			list = append(list, r)
		}
	}
	next := s.next.Load()
	return append(list, RangeOf(next, memfdBytes-next))
}
