package ccltest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// callOn makes calls until one fails, and returns how many did not.
func callOn(t testing.TB, c *ccl.Comm) (int, *ccl.Error) {
	x := make([]int, 1000)
	for i := 0; ; i++ {
		if err := ccl.AllReduce(t.Context(), c, x, x, ccl.Max); err != nil {
			var e *ccl.Error
			require.ErrorAs(t, err, &e)
			return i, e
		}
	}
}

func TestFaults(t *testing.T) {
	limits := With(ccl.Options{Timeout: 10 * time.Minute, PeerTimeout: 5 * time.Second})
	for _, tc := range []struct {
		name   string
		fault  Option
		code   ccl.Code
		after  time.Duration // virtual time, at least; and less than a second more
		victim ccl.Code      // what the victim hears; 0: nothing
	}{
		{"kill", Kill(1, 4), ccl.ErrRankLost, 0, 0},
		{"stall", Stall(1, 4, 11*time.Minute), ccl.ErrTimeout, 10 * time.Minute, ccl.ErrTimeout},
		{"stall for ever", Stall(1, 4, -1), ccl.ErrTimeout, 10 * time.Minute, ccl.ErrTimeout},
		{"partition", Partition(1, 4), ccl.ErrRankLost, 5 * time.Second, ccl.ErrRankLost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			began := time.Now()
			Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				start := time.Now()
				n, e := callOn(t, c)
				if c.Rank() == 1 {
					require.Equal(t, tc.victim, e.Code)
					return
				}
				require.Equal(t, 3, n)
				require.Equal(t, tc.code, e.Code, "%v", e)
				require.Equal(t, 1, e.Peer, "%v", e)
				require.GreaterOrEqual(t, time.Since(start), tc.after)
				require.Less(t, time.Since(start), tc.after+time.Second)
			}, VirtualTime(), limits, Deadline(2*time.Hour), tc.fault)
			require.Less(t, time.Since(began), time.Minute, "in real time")
		})
	}
}

// A stall shorter than all limits is no failure.
func TestShortStall(t *testing.T) {
	Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		start := time.Now()
		for range 3 {
			require.NoError(t, ccl.Barrier(t.Context(), c))
		}
		require.GreaterOrEqual(t, time.Since(start), time.Minute)
	}, VirtualTime(), Deadline(time.Hour), Stall(0, 2, time.Minute))
}

// A rank that is killed as it is about to split leaves at once, too: its Close waits for no use of the Comm.
func TestKilledAtASplit(t *testing.T) {
	for _, with := range []bool{false, true} {
		Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			var err error
			if with {
				_, err = c.SplitWith(t.Context(), 0, 0, func(*ccl.Options) {})
			} else {
				_, err = c.Split(t.Context(), 0, 0)
			}
			require.ErrorIs(t, err, ccl.ErrRankLost)
		}, Kill(1, 1), With(ccl.Options{PeerTimeout: time.Minute}), Deadline(15*time.Second))
	}
}

// The calls of all Comms of a rank count, and those made by a Queue.
func TestFaultsOfOtherComms(t *testing.T) {
	Run(t, 4, func(t testing.TB, world *ccl.Comm) {
		c, err := world.Split(t.Context(), world.Rank()%2, 0) // three exchanges: calls 1 to 3
		require.NoError(t, err)
		defer c.Close()
		x := []int{1}
		w := c.On(nil).AllReduce(ccl.BufOf(x), ccl.InPlace(), ccl.Sum) // call 4
		if world.Rank()%2 == 0 {
			require.NoError(t, w.Wait(t.Context()))
			require.ErrorIs(t, ccl.Barrier(t.Context(), world), ccl.ErrRankLost)
			return
		}
		require.ErrorIs(t, w.Wait(t.Context()), ccl.ErrRankLost)
	}, Kill(3, 4))
}

// Kill works over TCP as well, in real time; and the others go on without the rank.
func TestKillThenShrink(t *testing.T) {
	for _, opts := range [][]Option{nil, {Hosts(2)}, {Hosts(4)}, {VirtualTime()}} {
		Run(t, 4, func(t testing.TB, c *ccl.Comm) {
			_, e := callOn(t, c)
			require.Equal(t, ccl.ErrRankLost, e.Code)
			rest, err := c.Shrink(t.Context())
			require.NoError(t, err)
			defer rest.Close()
			ranks := make([]int, 3)
			require.NoError(t, ccl.AllGather(t.Context(), rest, ranks, []int{c.Rank()}))
			require.Equal(t, []int{0, 1, 3}, ranks)
		}, append(opts, Kill(2, 7))...)
	}
}

func TestFaultArguments(t *testing.T) {
	for _, tc := range []struct {
		opts []Option
		text string
	}{
		{[]Option{Kill(2, 1)}, "ccltest: a fault for rank 2; the ranks are 0 to 1"},
		{[]Option{Stall(0, 0, 1)}, "ccltest: a fault at call 0; calls are counted from 1"},
		{[]Option{VirtualTime(), Hosts(2)}, "ccltest: VirtualTime needs ranks that are goroutines on one host, or a World: network I/O takes real time"},
	} {
		require.Error(t, newAndCheck(t, tc.opts))
		require.EqualError(t, newAndCheck(t, tc.opts), tc.text[len("ccltest: "):])
	}
}

func newAndCheck(t *testing.T, opts []Option) error {
	w, err := newWorld(2, nil, opts)
	require.NoError(t, err)
	return w.checkFaults(t)
}
