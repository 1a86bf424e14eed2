package ccl_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A limit of one rank's call, however short, names the rank that is late, on all ranks alike, and never one that waits for it: of hosts of
// one rank and of several, in calls that all ranks wait for in another way.
func TestShortLimitNamesTheLateRank(t *testing.T) {
	const late, limit = 3, 5 * time.Millisecond
	x := func() []float32 { return make([]float32, 5000) }
	for _, tc := range []struct {
		name string
		call call
	}{
		{"Barrier", ccl.Barrier},
		{"MonitoredBarrier", ccl.MonitoredBarrier},
		{"AllReduce", func(ctx context.Context, c *ccl.Comm) error { v := x(); return ccl.AllReduce(ctx, c, v, v, ccl.Sum) }},
		{"Broadcast", func(ctx context.Context, c *ccl.Comm) error { return ccl.Broadcast(ctx, c, x(), late) }},
		{"AllToAll", func(ctx context.Context, c *ccl.Comm) error { return ccl.AllToAll(ctx, c, x(), x()) }},
		{"Recv", func(ctx context.Context, c *ccl.Comm) error { // 0 waits for 1, 1 for 2, 2 for 3
			return ccl.Recv(ctx, c, x(), c.Rank()+1)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var all [late + 1]atomic.Pointer[ccl.Comm]
			everywhere(t, late+1, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				all[c.Rank()].Store(c)
				works(ctx, t, c)
				meet(ctx)
				var err error
				switch c.Rank() {
				case 0:
					for r := 1; r < late; r++ {
						sleeps(t, all[r].Load())
					}
					short, cancel := context.WithTimeout(ctx, limit)
					defer cancel()
					err = tc.call(short, c)
				case late:
					<-c.Done()
					err = c.Err()
				default:
					err = tc.call(ctx, c)
				}
				e := wants(t, err, ccl.ErrTimeout)
				assert.Equal(t, []int{late}, e.Missing, "%v", err)
				assert.Equal(t, late, e.Peer)
				if c.Rank() != late {
					assert.Equal(t, tc.name, e.Op)
				}
			})
		})
	}
}

// The same among processes: the late rank's has to answer within a moment, and nobody is named where it does not.
func TestShortLimitBetweenProcesses(t *testing.T) {
	const late, tries = 3, 8
	for _, hosts := range []int{2, 4} {
		t.Run(fmt.Sprint(hosts, " hosts"), func(t *testing.T) {
			ccltest.Run(t, late+1, func(t testing.TB, world *ccl.Comm) {
				named := 0
				for try := range tries {
					c := ccltest.Split(t, world, 0, 0)
					ccltest.Barrier(t, c)
					ctx, cancel := t.Context(), context.CancelFunc(func() {})
					err := error(nil)
					switch c.Rank() {
					case late:
						<-c.Done()
						err = c.Err()
					case try % late:
						ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
						fallthrough
					default:
						err = ccl.MonitoredBarrier(ctx, c)
					}
					cancel()
					e := wants(t, err, ccl.ErrTimeout)
					peers := make([]int, world.Size())
					require.NoError(t, ccl.AllGather(t.Context(), world, peers, []int{e.Peer}))
					for _, p := range peers {
						require.Equal(t, peers[0], p, "one failure has one Peer: %v", err)
					}
					switch e.Peer {
					case late:
						require.Equal(t, []int{late}, e.Missing, "%v", err)
						named++
					default:
						require.Empty(t, e.Missing, "%v", err)
						require.Equal(t, -1, e.Peer, "%v", err)
					}
					require.NoError(t, c.Close())
				}
				require.Positive(t, named, "of %d tries", tries)
			}, ccltest.Processes(late+1), ccltest.Hosts(hosts))
		})
	}
}

// A rank that waits elsewhere for another is late in this Comm, but not to blame: that one is, as the waiting rank says when it is asked.
func TestAskedWhereElseItWaits(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			tps, named := make(chan *ccl.Comm, 1), make(chan struct{})
			world(t, 3, p.hosts(3), nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				tp, err := c.Split(ctx, min(c.Rank(), 1)-1, 0) // of ranks 1 and 2
				require.NoError(t, err)
				pair, err := c.Split(ctx, c.Rank()/2, 0) // of ranks 0 and 1
				require.NoError(t, err)
				defer pair.Close()
				if tp != nil {
					defer tp.Close()
					tp.SetName("tp")
				}
				switch c.Rank() {
				case 0:
					sleeps(t, <-tps)
					short, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
					defer cancel()
					e := wants(t, ccl.Barrier(short, pair), ccl.ErrTimeout)
					assert.Equal(t, []any{-1, []int{1}}, []any{e.Peer, e.Missing}, "%v", e)
					assert.ErrorContains(t, e, "world rank 2 is late in tp: context deadline exceeded")
					close(named)
				case 1:
					tps <- tp
					wants(t, ccl.Barrier(ctx, tp), ccl.ErrAborted)
				case 2:
					<-named
					tp.Abort(nil)
				}
			})
		})
	}
}

// A failure has one Peer, one Code and one list of Missing on all ranks, whatever the rank knew whose limit it was.
func TestOneFailureOnePeer(t *testing.T) {
	for _, how := range []string{"deadline", "cancel"} {
		t.Run(how, func(t *testing.T) {
			for try := range 8 {
				var mu sync.Mutex
				said := map[string]int{}
				everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
					works(ctx, t, c)
					meet(ctx)
					if c.Rank() == 1 {
						short, cancel := context.WithCancel(ctx)
						if how == "deadline" {
							short, cancel = context.WithTimeout(ctx, time.Duration(try)*time.Millisecond/2)
						} else {
							time.AfterFunc(time.Duration(try)*time.Millisecond/2, cancel)
						}
						defer cancel()
						ctx = short
					}
					v := make([]float32, 5000)
					var err error
					for err == nil {
						err = ccl.AllReduce(ctx, c, v, v, ccl.Sum)
					}
					e := wants(t, err, map[string]ccl.Code{"deadline": ccl.ErrTimeout, "cancel": ccl.ErrCanceled}[how])
					if how == "cancel" {
						assert.Equal(t, 1, e.Peer, "%v", e)
					}
					mu.Lock()
					said[fmt.Sprint(t.Name(), e.Code, e.Peer, e.Missing, e.Op)]++
					mu.Unlock()
				})
				for what, n := range said {
					require.Equal(t, 3, n, "%s: %v", what, said)
				}
			}
		})
	}
}
