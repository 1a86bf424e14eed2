package shm

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newSpace(from int) *space {
	s := new(space)
	s.next.Store(uint64(from * Page))
	return s
}

func giveBack(t *testing.T, s *space, off, size uint64) {
	t.Helper()
	require.Zero(t, s.give(RangeOf(off, size)))
}

// What is given back is handed out again, and ranges side by side become one.
func TestSpaceHandsOutAgain(t *testing.T) {
	p := uint64(Page)
	s := newSpace(3)
	take := func(pages uint64) uint64 {
		off, ok := s.take(pages * p)
		require.True(t, ok)
		return off / p
	}
	require.Equal(t, []uint64{3, 4, 6, 7, 11}, []uint64{take(1), take(2), take(1), take(4), take(1)})
	giveBack(t, s, 4*p, 2*p)
	giveBack(t, s, 7*p, 4*p)
	require.Equal(t, uint64(4), take(1), "the smallest that is large enough")
	require.Equal(t, uint64(7), take(3))
	giveBack(t, s, 4*p, p)
	giveBack(t, s, 6*p, p) // between the two
	giveBack(t, s, 7*p, 3*p)
	require.Equal(t, uint64(4), take(7), "all of it is one")
	giveBack(t, s, 4*p, 7*p)
	giveBack(t, s, 11*p, p) // the last
	require.Equal(t, 4*p, s.next.Load())
	giveBack(t, s, 3*p, p)
	require.Equal(t, 3*p, s.next.Load())
	require.Len(t, s.ranges(), 1, "nothing is left behind")
}

// What is too much is refused, and takes nothing.
func TestSpaceRefuses(t *testing.T) {
	s := newSpace(1)
	for _, size := range []uint64{memfdBytes, memfdBytes * 2, 1 << 62} {
		_, ok := s.take(size)
		require.False(t, ok, "%d", size)
	}
	off, ok := s.take(memfdBytes - uint64(Page))
	require.True(t, ok)
	require.Equal(t, uint64(Page), off)
	_, ok = s.take(uint64(Page))
	require.False(t, ok)
	giveBack(t, s, off, memfdBytes-uint64(Page))
	require.Equal(t, uint64(Page), s.next.Load())
}

// What there is no room to note stays in the hand of who gives it back, with what was joined to it.
func TestSpaceReturnsTheRest(t *testing.T) {
	var s space
	size := uint64(Page)
	for range 2*freeRanges + 3 {
		_, ok := s.take(size)
		require.True(t, ok)
	}
	for i := range freeRanges { // no two of them side by side
		require.Zero(t, s.give(RangeOf(uint64(2*i)*size, size)))
	}
	alone := RangeOf(uint64(2*freeRanges)*size, size)
	require.Equal(t, alone, s.give(alone))
	require.Zero(t, s.give(RangeOf(size, size)), "it joins two that are noted")
	require.Zero(t, s.give(alone))
}

// However many take and give at once, no page is handed out twice, and all come back.
func TestSpaceOfMany(t *testing.T) {
	s := newSpace(1)
	var mu sync.Mutex
	owned := map[uint64]bool{}
	var all sync.WaitGroup
	for g := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(g, 1))
			var mine []Range
			for i := range 5000 {
				if len(mine) > 0 && (len(mine) > 20 || r.IntN(2) == 0 || i > 4900) {
					at := r.IntN(len(mine))
					q := mine[at]
					mine = append(mine[:at], mine[at+1:]...)
					mu.Lock()
					for p := q.First(); p < q.end(); p++ {
						delete(owned, p)
					}
					mu.Unlock()
					assert.Zero(t, s.give(q))
					continue
				}
				size := uint64(1+r.IntN(30)) * uint64(Page)
				off, ok := s.take(size)
				require.True(t, ok)
				q := RangeOf(off, size)
				mine = append(mine, q)
				mu.Lock()
				for p := q.First(); p < q.end(); p++ {
					if owned[p] {
						t.Errorf("page %d was handed out twice", p)
					}
					owned[p] = true
				}
				mu.Unlock()
			}
			for _, q := range mine {
				assert.Zero(t, s.give(q))
			}
		})
	}
	all.Wait()
	free := uint64(0)
	for _, q := range s.ranges() {
		free += q.Pages()
	}
	require.Equal(t, memfdBytes/uint64(Page)-1, free)
	require.Less(t, s.next.Load(), uint64(4*30*30*Page), "what came back was used")
}

// More free ranges than can be noted wait in their process, and are not lost.
func TestSpareRanges(t *testing.T) {
	h := NewPrivate(64)
	h.fd = 1 << 20 // as if it were shared: nothing here touches memory
	s := &h.own.space
	var odd, even []uint64
	for i := range 2*freeRanges + 200 {
		off, ok := s.take(uint64(Page))
		require.True(t, ok)
		if i%2 == 0 {
			even = append(even, off)
		} else {
			odd = append(odd, off)
		}
	}
	for _, off := range even {
		h.give(off, Page)
	}
	require.Len(t, h.spare, 100)
	for _, off := range odd {
		h.give(off, Page)
	}
	require.Empty(t, h.spare)
	require.Len(t, s.ranges(), 1)
	require.Zero(t, s.next.Load())
}
