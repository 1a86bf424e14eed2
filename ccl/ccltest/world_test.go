package ccltest

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

var lan = simnet.Link{Delay: 100 * time.Microsecond, Jitter: 50 * time.Microsecond, Rate: 1e9}

// A job of four hosts that waits for an hour takes moments, and is as exact as any.
func TestWorld(t *testing.T) {
	Run(t, 8, func(t testing.TB, c *ccl.Comm) {
		began := time.Now()
		for i := range 100 {
			x := []int{c.Rank(), i}
			require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
			require.Equal(t, []int{28, 8 * i}, x)
		}
		time.Sleep(time.Hour)
		part := Split(t, c, c.Rank()%2, 0)
		require.NoError(t, ccl.Barrier(t.Context(), part))
		require.Less(t, time.Since(began), time.Hour+time.Second)
	}, Hosts(4), Deadline(2*time.Hour), World(1, lan, nil))
}

// All of the job stands still: nothing fails.
func TestWorldPaused(t *testing.T) {
	Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		for range 100 {
			require.NoError(t, ccl.Barrier(t.Context(), c))
			time.Sleep(20 * time.Millisecond)
		}
	}, Hosts(3), With(ccl.Options{Timeout: 4 * time.Second, PeerTimeout: 2 * time.Second}), Deadline(time.Hour),
		World(1, lan, func(_ context.Context, n *simnet.Net) {
			time.Sleep(time.Second)
			for i := range n.Size() {
				n.Host(i).Stop()
			}
			time.Sleep(10 * time.Minute)
			for i := range n.Size() {
				n.Host(i).Go()
			}
		}))
}

// A pause of the whole job, in the middle of a handshake with a hall, keeps nobody from it.
func TestHallOutlivesAPause(t *testing.T) {
	for at := range 8 {
		synctest.Test(t, func(t *testing.T) {
			n := simnet.New(1, 2, simnet.Link{Delay: 10 * time.Millisecond})
			l, err := n.Host(1).Listen("0.0.0.0:29400")
			require.NoError(t, err)
			hall, err := boot.ServeHall(l, secret)
			require.NoError(t, err)
			defer hall.Close()
			store, err := boot.DialHall(n.Host(1).Addr().String()+":29400", secret)
			require.NoError(t, err)
			time.AfterFunc(time.Duration(10*at+5)*time.Millisecond, func() {
				for i := range n.Size() {
					n.Host(i).Stop()
					time.AfterFunc(time.Minute, n.Host(i).Go)
				}
			})
			require.NoError(t, store.Set(n.Host(0).Context(t.Context()), "key", []byte("value")), "stopped in leg %d", at)
			value, err := hall.Get(t.Context(), "key")
			require.NoError(t, err)
			require.Equal(t, "value", string(value))
			time.Sleep(2 * time.Minute)
		})
	}
}

// Those that are left name the host that has ended, one that is silent, and one that has stopped.
func TestWorldLosses(t *testing.T) {
	for name, befall := range map[string]func(n *simnet.Net){
		"killed":  func(n *simnet.Net) { n.Host(1).Kill(false) },
		"silent":  func(n *simnet.Net) { n.Host(1).Kill(true) },
		"cut off": func(n *simnet.Net) { n.CutOff(1, true); time.Sleep(time.Minute); n.CutOff(1, false) },
		"stopped": func(n *simnet.Net) { n.Host(1).Stop(); time.Sleep(time.Minute); n.Host(1).Go() },
	} {
		t.Run(name, func(t *testing.T) {
			Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				var err error
				for err == nil {
					err = ccl.Barrier(t.Context(), c)
					time.Sleep(time.Millisecond)
				}
				require.ErrorIs(t, err, ccl.ErrRankLost)
				if c.Rank() == 1 {
					return
				}
				require.ErrorContains(t, err, "rank 1 lost")
				less, err := c.Shrink(t.Context())
				require.NoError(t, err)
				defer less.Close()
				require.Equal(t, 2, less.Size())
				require.NoError(t, ccl.Barrier(t.Context(), less))
			}, Hosts(3), With(ccl.Options{PeerTimeout: 2 * time.Second, Log: slog.New(slog.DiscardHandler)}), Deadline(time.Hour),
				World(1, lan, func(_ context.Context, n *simnet.Net) { time.Sleep(time.Second); befall(n) }))
		})
	}
}
