package shm

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/internal/op"
)

// RingSlots is how many values a Ring holds.
const RingSlots = 64

// Ring holds the last RingSlots values that the processes of a host have told each other. It lies
// in shared memory, and T has no pointers. The writer of a value claims a slot, fills it and stamps
// it. It may be killed between any two of these: the claim names the writer in the same store, so
// readers pass over what the dead have not stamped. It may also be stopped there, given up, and go
// on when the slot holds another value: readers check a sum over the value and its number, which
// shows the damage.
type Ring[T any] struct {
	n     atomic.Uint64 // values claimed; it may lag by one, and a process that notices corrects it
	_     [120]byte
	slots [RingSlots]struct {
		stamp atomic.Uint64 // stampOf the value that it holds, or is to hold
		sum   uint64
		v     T
	}
}

// Claimed counts the values whose slots have been claimed.
func (l *Ring[T]) Claimed() uint64 { return l.n.Load() }

// words are those of a value, which has no pointers.
func words[T any](v *T) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(v)), unsafe.Sizeof(*v)/8)
}

// sumOf is the sum of value i.
func sumOf[T any](v *T, i uint64) uint64 {
	h := op.Mix(i + 1)
	for _, w := range words(v) {
		h = h.With(w)
	}
	return uint64(h)
}

// stampOf is the stamp of the slot of value i: 1 + i, its writer, and whether it has been written.
func stampOf(i uint64, writer int, written uint64) uint64 {
	return (i+1)<<16 | uint64(writer)<<1&0xfffe | written
}

func stampNumber(stamp uint64) uint64 { return stamp >> 16 }

func stampWriter(stamp uint64) int { return int(stamp >> 1 & 0x7fff) }

// Append adds v, which the process whose lowest rank is the writer-th of the host writes. It is
// false where room says that the slot is not free yet, which it may be later; a nil room overwrites
// what is oldest.
func (l *Ring[T]) Append(v *T, writer int, room func(i uint64) bool) bool {
	for {
		i := l.n.Load()
		s := &l.slots[i%RingSlots]
		old := s.stamp.Load()
		if stampNumber(old) > i {
			l.n.CompareAndSwap(i, i+1) // value i is another's, which may have died just then
			continue
		}
		if room != nil && !room(i) {
			return false
		}
		// The claim: a swap of what was seen, so that one writer alone gets the slot for value i. It acquires what
		// readers have released in their last look (see read), so the plain stores of v come after their loads.
		if !s.stamp.CompareAndSwap(old, stampOf(i, writer, 0)) {
			continue
		}
		l.n.CompareAndSwap(i, i+1) // only says that there is something to look at
		inject.At("cpu.log")
		l.fill(v, i, writer)
		return true
	}
}

// fill writes value i, which writer has claimed the slot for.
func (l *Ring[T]) fill(v *T, i uint64, writer int) {
	s := &l.slots[i%RingSlots]
	copy(words(&s.v), words(v)) // with what lies between fields, which counts in the sum
	s.sum = sumOf(v, i)
	// Publishes v: a release, before which the stores of v are seen by who loads this stamp.
	s.stamp.CompareAndSwap(stampOf(i, writer, 0), stampOf(i, writer, 1))
}

// Read returns value i; ok is false while it is being written, gone that it was overwritten or spoilt, or that its
// writer, of which dead tells, has not stamped it and never will.
func (l *Ring[T]) Read(i uint64, dead func(writer int) bool) (v T, ok, gone bool) {
	s := &l.slots[i%RingSlots]
	at := s.stamp.Load() // an acquire: the loads of v come after it
	switch {
	case stampNumber(at) != i+1:
		return v, false, stampNumber(at) > i+1
	case at&1 == 0:
		// The second look comes after the one at the writer's death: what it had stamped by then is seen.
		return v, false, dead != nil && dead(stampWriter(at)) && s.stamp.Load() == at
	}
	copy(words(&v), words(&s.v))
	sum := s.sum
	// The second look stores, too: as a release it comes after the loads of v, also on arm64, where a load alone could
	// come before them. If it finds the stamp as it was, then a claim that comes later reads what it has stored, and
	// the stores behind that claim come after the loads here.
	whole := s.stamp.Add(0) == at && sum == sumOf(&v, i)
	return v, whole, !whole
}

// Unread calls f for the values from *next on, and moves it. A value that is being written ends it, or is passed over
// where its writer is dead. f gets a copy on its stack: a monitor that listens allocates nothing.
func (l *Ring[T]) Unread(next *uint64, dead func(writer int) bool, f func(T)) {
	for tries := 0; tries < 1000; {
		n := l.n.Load()
		if *next == n {
			return
		}
		if n-*next > RingSlots {
			*next = n - RingSlots
		}
		v, ok, gone := l.Read(*next, dead)
		if ok || gone {
			*next++
		} else {
			tries++
		}
		if ok {
			f(v)
		}
	}
}
