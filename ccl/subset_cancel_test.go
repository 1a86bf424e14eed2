package ccl_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A rank that gives up is heard of by all that are there, at once and by its name, also where another has not come: the one that all tell
// that they are there, too. Nothing that is left of it ends the next attempt.
func TestSubsetCanceled(t *testing.T) {
	const n = 4
	all := []int{2, 0, 3, 1}
	inTime(t, n, &ccl.Options{Timeout: -1}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for quits := range n {
			for missing := range n {
				if missing == quits {
					continue
				}
				what := fmt.Sprintf("rank %d gives up, %d is missing; this is rank %d", quits, missing, c.Rank())
				switch c.Rank() {
				case missing:
				case quits:
					quitUntilHeard(ctx, t, c, all)
				default:
					_, err := ccl.Subset(ctx, c, all, 0)
					e := wants(t, err, ccl.ErrCanceled)
					if e == nil {
						return
					}
					assert.Equal(t, quits, e.Peer, what)
					assert.Contains(t, e.Error(), "given it up", what)
					heardOf.Add(1)
				}
				meet(ctx)
				if heardOf.Store(0); missing == 0 || quits == 0 { // every way to it has been taken by then
					sub, err := ccl.Subset(ctx, c, all, 0)
					if !assert.NoError(t, err, what) {
						return
					}
					works(ctx, t, sub)
					assert.NoError(t, sub.Close())
				}
				meet(ctx)
			}
		}
		works(ctx, t, c)
	})
}

// heardOf is how many ranks of TestSubsetCanceled have heard.
var heardOf atomic.Int32

// quitUntilHeard gives up again and again, until all others that are there have heard: they may have come later.
func quitUntilHeard(ctx context.Context, t *testing.T, c *ccl.Comm, all []int) {
	for heardOf.Load() < int32(len(all)-2) && ctx.Err() == nil {
		gone, cancel := context.WithCancel(ctx)
		timer := time.AfterFunc(20*time.Millisecond, cancel)
		_, err := ccl.Subset(gone, c, all, 0)
		timer.Stop()
		cancel()
		wants(t, err, ccl.ErrCanceled)
	}
}

// Wherever the ranks are when one gives up, all have the Comm, or all an error, and the next attempt is another one.
func TestSubsetCanceledAnywhere(t *testing.T) {
	times := 100
	if testing.Short() {
		times = 30
	}
	everywhere(t, 3, &ccl.Options{Timeout: -1}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		all, fails := []int{1, 2, 0}, 0
		for i := range times {
			quits := i % 3
			attempt := func() (*ccl.Comm, error) {
				gone, cancel := context.WithCancel(ctx)
				defer cancel()
				if quits == c.Rank() {
					time.AfterFunc(rand.N(600*time.Microsecond), cancel)
				}
				return ccl.Subset(gone, c, all, 0)
			}
			sub, err := attempt()
			for quits == c.Rank() && err != nil && heardOf.Load() < 2 && ctx.Err() == nil {
				sub, err = attempt() // the others may have come later
			}
			if quits != c.Rank() {
				heardOf.Add(1)
			}
			anywhere[c.Rank()].Store(err == nil)
			meet(ctx)
			for r := range anywhere {
				require.Equal(t, err == nil, anywhere[r].Load(), "rank %d, attempt %d: %v", c.Rank(), i, err)
			}
			if err == nil {
				works(ctx, t, sub)
				assert.NoError(t, sub.Close())
			} else {
				fails++
				e := wants(t, err, ccl.ErrCanceled)
				if quits != c.Rank() {
					assert.Equal(t, quits, e.Peer)
				}
			}
			heardOf.Store(0)
			meet(ctx)
		}
		t.Logf("rank %d: %d of %d failed", c.Rank(), fails, times)
		sub, err := ccl.Subset(ctx, c, all, 0)
		require.NoError(t, err)
		works(ctx, t, sub)
		assert.NoError(t, sub.Close())
	})
}

// anywhere is which ranks of TestSubsetCanceledAnywhere have a Comm.
var anywhere [3]atomic.Bool

// The same of processes, on one host and on two: what one has read of another's memory counts only if both know of it.
func TestSubsetCanceledOfProcesses(t *testing.T) {
	const n = 3
	for name, opts := range map[string][]ccltest.Option{
		"one host":  {ccltest.Processes(n)},
		"two hosts": {ccltest.Processes(n), ccltest.Hosts(2)},
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				for i := range 40 {
					quits := i % n
					sub, err := subsetUntil(ctx, t, c, []int{2, 0, 1}, quits)
					least, most := []int{0}, []int{0}
					if err == nil {
						least[0], most[0] = 1, 1
					}
					require.NoError(t, ccl.AllReduce(ctx, c, least, least, ccl.Min))
					require.NoError(t, ccl.AllReduce(ctx, c, most, most, ccl.Max))
					require.Equal(t, least, most, "attempt %d: %v", i, err)
					if err != nil {
						require.ErrorIs(t, err, ccl.ErrCanceled)
						continue
					}
					require.NoError(t, ccl.Barrier(ctx, sub))
					require.NoError(t, sub.Close())
				}
			}, opts...)
		})
	}
}

// subsetUntil is a Subset that rank quits gives up soon, again and again, until it has succeeded or the others have returned.
func subsetUntil(ctx context.Context, t testing.TB, c *ccl.Comm, ranks []int, quits int) (*ccl.Comm, error) {
	if c.Rank() != quits {
		sub, err := ccl.Subset(ctx, c, ranks, 0)
		require.NoError(t, ccl.LinkTo(c, quits, 1).Send(ccl.BufOf([]int{1})).Wait(ctx))
		return sub, err
	}
	var back []ccl.Message
	for r := range c.Size() {
		if r != quits {
			back = append(back, ccl.LinkTo(c, r, 1).Recv(ccl.BufOf([]int{0})))
		}
	}
	for {
		gone, cancel := context.WithCancel(ctx)
		time.AfterFunc(rand.N(2*time.Millisecond), cancel)
		sub, err := ccl.Subset(gone, c, ranks, 0)
		cancel()
		over := true
		for _, m := range back {
			if err == nil {
				require.NoError(t, m.Wait(ctx))
				continue
			}
			done, failed := m.Test()
			require.NoError(t, failed)
			over = over && done
		}
		if err == nil || over {
			return sub, err
		}
	}
}
