package rounds

import (
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

func barrier() *call.Call {
	return &call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier, Root: -1}}}
}

// A flag is the number of its round and the hash of the call; a rank that waits for it returns, and with another hash finds
// a mismatch with the rank that posted it.
func TestPostAndAwait(t *testing.T) {
	all := ranksOf(t, 2, byDirect)
	k, other := barrier(), barrier()
	enter(all[0], k)
	other.Count = 1
	enter(all[1], other)
	round, f := all[0].slots.open(t.Context(), k, false)
	require.Nil(t, f)
	require.Equal(t, all[0].rank.Order.Start+1, round)
	all[0].slots.post(k, round)
	require.Equal(t, uint64(round)<<32|uint64(k.Hash), atomic.LoadUint64(all[1].local.Flag(0, round)))
	require.Nil(t, all[1].slots.await(t.Context(), k, 0, round), "the same call")

	f = all[1].slots.await(t.Context(), other, 0, round)
	require.NotNil(t, f, "another call")
	assert.Equal(t, call.Mismatch, f.Code)
	assert.Equal(t, 0, f.Peer)
}

// A rank that only posts is at most Depth-2 rounds ahead of the others: the next slot may not have been read yet.
func TestOpenWaitsForReaders(t *testing.T) {
	for _, n := range []int{2, 3} {
		all := ranksOf(t, n, byDirect)
		c := all[0]
		k := barrier()
		enter(c, k)
		for range c.local.Depth - 2 {
			round, f := c.slots.open(t.Context(), k, false)
			require.Nil(t, f)
			c.slots.post(k, round)
		}
		before := c.rank.Order.Round
		_, f := c.slots.open(ended(t), k, false)
		require.NotNil(t, f, "%d ranks: a slot that may not have been read is opened", n)
		assert.Equal(t, call.Canceled, f.Code)
		assert.Equal(t, before+1, c.rank.Order.Round)
	}
}

// A slot is free again once all have posted a round near enough, which one look at their flags tells for several rounds.
func TestOpenLooksAhead(t *testing.T) {
	all := ranksOf(t, 2, byDirect)
	k := barrier()
	for _, c := range all {
		enter(c, k)
	}
	depth := all[0].local.Depth
	for range depth - 2 {
		for _, c := range all {
			round, f := c.slots.open(t.Context(), k, false)
			require.Nil(t, f)
			c.slots.post(k, round)
		}
	}
	start := all[0].rank.Order.Start
	require.Equal(t, start, all[0].slots.seen, "no rank has looked")
	_, f := all[0].slots.open(t.Context(), k, false)
	require.Nil(t, f)
	require.Equal(t, start+1+depth/4, all[0].slots.seen)
}

// How far a rank that only sends runs ahead of the others follows from the size of its data: as far as it has slots, and
// of large data as far as its ring goes.
func TestPlaceRunsAhead(t *testing.T) {
	for _, tc := range []struct{ ranks, bytes, ahead int }{
		{3, 0, 62}, {3, 56, 62}, {3, 57, 62}, {3, 1 << 10, 62}, {3, 8 << 10, 62}, {3, 8<<10 + 1, 32}, {3, 24 << 10, 21}, {3, 32 << 10, 16},
		{8, 1 << 10, 62}, {8, 4 << 10, 62}, {8, 32 << 10, 8}, {9, 8, 30}, {9, 1 << 10, 30}, {9, 2 << 10, 16}, {65, 8, 6}, {65, 2 << 10, 6},
	} {
		all := ranksOf(t, tc.ranks, byDirect)
		c, k, ahead := all[0], barrier(), 0
		enter(c, k)
		var f *call.Fault
		for ; f == nil; ahead++ {
			var round uint32
			if round, _, f = c.staging.begin(ended(t), k, tc.bytes); f == nil {
				c.slots.post(k, round)
			}
		}
		assert.Equal(t, call.Canceled, f.Code)
		assert.Equal(t, tc.ahead, ahead-1, "%d bytes, %d ranks", tc.bytes, tc.ranks)
	}
}

// A rank that sends data of all sizes, as fast as the others let it, overwrites nothing that one of them has yet to read;
// also where the numbers of the rounds begin again, and where a segment has not been used for so many rounds that its number
// seems to be the next one.
func TestPlaceKeepsWhatIsUnread(t *testing.T) {
	const rounds = 3000
	for _, start := range []uint32{0, ^uint32(rounds / 2)} {
		all := ranksOf(t, 4, byDirect)
		sizes := rand.New(rand.NewPCG(1, 2))
		var lengths [rounds]int
		for i := range lengths {
			lengths[i] = 1 + sizes.IntN(tuning.SlotRoom(4))
			switch i % 5 {
			case 0, 3:
				lengths[i] = 1 + sizes.IntN(200)
			case 1:
				lengths[i] = 1 + sizes.IntN(tuning.SentTo(4))
			}
		}
		for _, c := range all {
			c.rank.Order.BeginAt(start)
			c.slots.begin(start)
			if start != 0 {
				for i := range c.slots.ring.last {
					c.slots.ring.last[i] = start + uint32(i)
				}
			}
		}
		atOnce(t, all, func(c *Team) *call.Fault {
			k := barrier()
			enter(c, k)
			pause := rand.New(rand.NewPCG(3, uint64(c.me)))
			for i, n := range lengths {
				if c.me == 0 {
					round, to, f := c.staging.begin(t.Context(), k, n)
					if f != nil {
						return f
					}
					for at := range n {
						*(*byte)(unsafe.Add(to, at)) = byte(i + at)
					}
					c.slots.post(k, round)
					continue
				}
				round, f := c.slots.open(t.Context(), k, false)
				if f != nil {
					return f
				}
				c.slots.post(k, round)
				from, f := c.staging.fetch(t.Context(), k, 0, round, n)
				if f != nil {
					return f
				}
				if pause.IntN(10) == 0 {
					runtime.Gosched()
				}
				for at := range n {
					if got := *(*byte)(unsafe.Add(from, at)); got != byte(i+at) {
						t.Errorf("rank %d, message %d: byte %d of %d is %d, not %d", c.me, i, at, n, got, byte(i+at))
						break
					}
				}
			}
			f := c.slots.barrier(t.Context(), k)
			c.rank.EndCall()
			return f
		})
	}
}

// Of two ranks, each knows after awaitAll that the other has posted; a barrier is a round, and releaseBy waits for one rank.
func TestBarrierAndRelease(t *testing.T) {
	all := ranksOf(t, 3, byDirect)
	for _, tc := range []struct {
		name   string
		f      func(c *Team, k *call.Call) *call.Fault
		rounds uint32
		seen   [3]uint32 // how many rounds back of the last is known to be posted by all, by rank
	}{
		{"barrier", func(c *Team, k *call.Call) *call.Fault { return c.slots.barrier(t.Context(), k) }, 1, [3]uint32{0, 0, 0}},
		{"released by all", func(c *Team, k *call.Call) *call.Fault { return c.slots.release(t.Context(), k, c.me == 1) }, 1, [3]uint32{1, 0, 1}},
		{"released by one", func(c *Team, k *call.Call) *call.Fault { return c.slots.releaseBy(t.Context(), k, 2) }, 1, [3]uint32{2, 1, 2}},
	} {
		before := all[0].rank.Order.Round
		atOnce(t, all, func(c *Team) *call.Fault {
			k := barrier()
			enter(c, k)
			f := tc.f(c, k)
			c.rank.EndCall()
			return f
		})
		for r, c := range all {
			assert.Equal(t, before+tc.rounds, c.rank.Order.Round, tc.name)
			assert.Equal(t, c.rank.Order.Round-tc.seen[r], c.slots.seen, "%s: rank %d", tc.name, r)
		}
	}
}

// A rank that has come first to a barrier is woken once, by the last of the others, in whatever order they come.
func TestBarrierWakesOnce(t *testing.T) {
	for _, n := range []int{3, 8} {
		ranks := ranksOf(t, n, byDirect)
		first := ranks[0]
		bell := first.rank.Share.Local.Bell(0)
		done := make([]chan *call.Fault, n)
		begin := func(r int) {
			done[r] = make(chan *call.Fault, 1)
			go func() { done[r] <- run(t, ranks[r], callOf(call.Barrier, 0, 0, nil, nil)) }()
		}
		begin(0)
		require.Eventually(t, func() bool { return uint32(bell.Load()) == plane.BellAll }, 20*time.Second, time.Millisecond, "it does not sleep")
		slept := bell.Load()
		for r := 1; r < n-1; r++ {
			begin(r)
			own := first.rank.Share.Local.Bell(r)
			require.Eventually(t, func() bool { return own.Load() == slept }, 20*time.Second, time.Millisecond, "rank %d does not sleep until the same", r)
			require.Equal(t, slept, bell.Load(), "rank %d of %d has rung", r, n)
			require.EqualValues(t, r+1, first.rank.Share.Local.Sleepers().Load())
		}
		begin(n - 1)
		for r := range n {
			require.Nil(t, <-done[r])
		}
		require.Zero(t, first.rank.Share.Local.Sleepers().Load())
	}
}
