package ccl_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/algo"
)

// slowRing are links between n hosts of which those of the ranks' own order are slow.
func slowRing(n int) [][]ccl.HostLink {
	links := make([][]ccl.HostLink, n)
	for i := range links {
		links[i] = make([]ccl.HostLink, n)
		for j := range links[i] {
			links[i][j] = ccl.HostLink{Bandwidth: 1e8, RoundTrip: time.Millisecond}
			if (i+1)%n == j || (j+1)%n == i {
				links[i][j].Bandwidth = 1e6
			}
		}
	}
	return links
}

// sameOrder checks that all ranks of c have its hosts in the same order, and that what goes round is right.
func sameOrder(ctx context.Context, t testing.TB, c *ccl.Comm) {
	t.Helper()
	all, err := ccl.AllGatherValues(ctx, c, ccl.OrderOf(c))
	require.NoError(t, err)
	for r, theirs := range all {
		require.Equal(t, all[0], theirs, "rank %d", r)
	}
	sumsUp(t, c)
}

// Hosts whose links nobody has measured outweigh nothing: those that are known are ordered as they would be without them.
func TestOrderBesideUnmeasured(t *testing.T) {
	for _, hosts := range []int{8, 14} { // the best tour, and a good one
		links := make([][]ccl.HostLink, hosts)
		for i := range links {
			links[i] = make([]ccl.HostLink, hosts)
			for j := range links[i] {
				switch {
				case max(i, j) >= hosts-2:
				case i%2 == j%2: // in one of two sites, whose hosts take turns
					links[i][j] = ccl.HostLink{Bandwidth: 1e9, RoundTrip: time.Millisecond}
				default:
					links[i][j] = ccl.HostLink{Bandwidth: 1e6, RoundTrip: 100 * time.Millisecond}
				}
			}
		}
		tour := algo.Tour(ccl.CostsOf(links))
		crossings := 0
		for i, from := range tour {
			if to := tour[(i+1)%hosts]; max(from, to) < hosts-2 && from%2 != to%2 {
				crossings++
			}
		}
		require.LessOrEqual(t, crossings, 2, "%v", tour)
	}
	for _, row := range ccl.CostsOf(make([][]ccl.HostLink, 3)) {
		for _, cost := range row {
			require.Positive(t, cost)
		}
	}
}

// A Comm of a few hosts of a job holds what was measured between those, and not a table of the job's hosts.
func TestLinksOfFewHosts(t *testing.T) {
	const n = 12
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		part, err := c.Split(t.Context(), c.Rank()/4, 0)
		require.NoError(t, err)
		defer part.Close()
		require.NoError(t, ccl.Reorder(t.Context(), part))
		require.Equal(t, 4*3, ccl.MeasuredLinks(part))
		ccl.KeepLinks(part, slowRing(4))
		again, err := part.Split(t.Context(), 0, 0)
		require.NoError(t, err)
		defer again.Close()
		sameOrder(t.Context(), t, again)
	}, ccltest.Hosts(n))
}

// A rank may have ended a Reorder in which another has failed. After it Shrink makes a Comm of one order: the plain one,
// unless the ranks have to agree on the links.
func TestShrinkAfterHalfAReorder(t *testing.T) {
	for _, order := range []ccl.HostOrder{ccl.OrderRanks, ccl.OrderLinks} {
		t.Run(fmt.Sprint(order), func(t *testing.T) { shrinkAfterHalfAReorder(t, order) })
	}
}

func shrinkAfterHalfAReorder(t *testing.T, order ccl.HostOrder) {
	const n = 5
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		if c.Rank()%2 == 0 {
			ccl.KeepLinks(c, slowRing(n))
		}
		if c.Rank() == 4 {
			c.Abort(assert.AnError)
		}
		assert.Error(t, untilFailed(t.Context(), c))
		d, err := c.Shrink(t.Context())
		require.NoError(t, err)
		defer d.Close()
		sameOrder(t.Context(), t, d)
		require.Equal(t, order == ccl.OrderRanks, slices.Equal([]int{0, 1, 2, 3, 4}, ccl.OrderOf(d)))
	}, ccltest.Hosts(n), ccltest.With(ccl.Options{Order: order}))
}

// Some ranks come to a Subset before they reorder the hosts, and others afterwards.
func TestSubsetBesideReorder(t *testing.T) {
	const n = 5
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		subset := func() {
			d, err := ccl.Subset(t.Context(), c, []int{0, 1, 2, 3, 4}, 0)
			require.NoError(t, err)
			defer d.Close()
			sameOrder(t.Context(), t, d)
		}
		done := make(chan struct{})
		if c.Rank() < 2 {
			go func() {
				defer close(done)
				subset()
			}()
		} else {
			close(done)
		}
		require.NoError(t, ccl.Reorder(t.Context(), c))
		ccl.KeepLinks(c, slowRing(n))
		if c.Rank() >= 2 {
			subset()
		}
		<-done
		sameOrder(t.Context(), t, c)
	}, ccltest.Hosts(n))
}

// A spare that takes a place hears of the links that the others have measured since it began to wait.
func TestReplaceKeepsReorder(t *testing.T) {
	const n = 4
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		if c.Fresh() == nil {
			ccl.KeepLinks(c, slowRing(n))
			sameOrder(t.Context(), t, c)
			if c.Rank() == 3 {
				assert.NoError(t, c.Close())
				return
			}
			assert.Error(t, untilFailed(t.Context(), c))
			next, err := c.Replace(t.Context())
			require.NoError(t, err)
			c = next
		}
		defer c.Close()
		sameOrder(t.Context(), t, c)
		links := ccl.LinksOf(c)
		require.Len(t, links, n)
		for i, row := range slowRing(n) {
			for j, l := range row {
				if i != 3 && j != 3 { // which is on another host now
					assert.Equal(t, l, links[i][j], "rank %d: from %d to %d", c.Rank(), i, j)
				}
			}
		}
	}, ccltest.Hosts(n+1), ccltest.Spares(1))
}

// Grow keeps the order that Reorder has made, though the newcomer does not know of it.
func TestGrowKeepsReorder(t *testing.T) {
	j := newGrowing(t)
	check := func(c *ccl.Comm) {
		defer c.Close()
		for i, row := range ccl.LinksOf(c) {
			for k, l := range row {
				assert.Equal(t, i != k, l.Bandwidth > 0, "from %d to %d", i, k)
			}
		}
		sameOrder(j.ctx, t, c)
	}
	j.start(3, 0, []string{"a", "b", "c"}, func(c *ccl.Comm) {
		assert.NoError(t, ccl.Reorder(j.ctx, c))
		if c.Rank() == 0 {
			j.come(ccl.Options{}, func(c *ccl.Comm, err error) {
				if assert.NoError(t, err) {
					check(c)
				}
			})
			j.waits(1)
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		check(j.grow(c, 4))
	})
	j.all.Wait() // within the time of the test's context
}

// endsAfter is a context that is canceled once it has been asked for its error so often.
type endsAfter struct {
	context.Context
	cancel context.CancelFunc
	asks   atomic.Int64
}

func (c *endsAfter) Err() error {
	if c.asks.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// Where the context of one rank ends, wherever that is in its Reorder, all ranks hear so.
func TestReorderIsCanceled(t *testing.T) {
	for asks := int64(0); asks < 200; asks += 1 + asks/8 {
		virtually(t, 3, []string{"a", "b", "c"}, func(int) *ccl.Options { return nil }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			if c.Rank() == 1 {
				within, cancel := context.WithCancel(ctx)
				defer cancel()
				counted := &endsAfter{Context: within, cancel: cancel}
				counted.asks.Store(asks)
				ctx = counted
			}
			err := ccl.Reorder(ctx, c)
			if err == nil {
				err = ccl.Barrier(ctx, c)
			}
			if asks == 0 || err != nil {
				assert.ErrorIs(t, err, ccl.ErrCanceled, "rank %d, %d", c.Rank(), asks)
			}
		})
	}
}
