package ccl_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Each host meets each other once, and at most one at a time.
func TestTournament(t *testing.T) {
	for n := 2; n < 12; n++ {
		met := map[[2]int]int{}
		for round := range n + n%2 - 1 {
			for me := range n {
				p := ccl.Opponent(me, round, n)
				require.NotEqual(t, me, p)
				if p >= 0 {
					require.Equal(t, me, ccl.Opponent(p, round, n), "%d of %d in round %d", me, n, round)
					met[[2]int{me, p}]++
				}
			}
		}
		require.Len(t, met, n*(n-1), "of %d", n)
		for pair, times := range met {
			require.Equal(t, 1, times, "%v", pair)
		}
	}
}

// sumsUp has c sum up what goes round a ring, and what does not.
func sumsUp(t testing.TB, c *ccl.Comm) {
	t.Helper()
	for _, n := range []int{3, 100_000} {
		x := make([]int, n)
		for i := range x {
			x[i] = i * (c.Rank() + 1)
		}
		require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
		for i := range x {
			if want := i * c.Size() * (c.Size() + 1) / 2; x[i] != want {
				require.Equal(t, want, x[i], "element %d", i)
			}
		}
	}
}

// All ranks get the same, of each pair of hosts, and the calls that follow are right, in every Comm that comes of it.
func TestMeasureLinks(t *testing.T) {
	for _, w := range []struct{ ranks, hosts int }{{1, 1}, {4, 2}, {4, 4}, {6, 3}} {
		t.Run(fmt.Sprint(w), func(t *testing.T) {
			ccltest.Run(t, w.ranks, func(t testing.TB, c *ccl.Comm) {
				links, err := ccl.MeasureLinks(t.Context(), c)
				require.NoError(t, err)
				require.Len(t, links, w.hosts)
				all, err := ccl.AllGatherValues(t.Context(), c, links)
				require.NoError(t, err)
				for _, other := range all {
					require.Equal(t, links, other)
				}
				for i, row := range links {
					require.Len(t, row, w.hosts)
					for j, l := range row {
						require.Equal(t, i != j, l.Bandwidth > 0, "from %d to %d", i, j)
						require.Equal(t, i != j, l.RoundTrip > 0, "from %d to %d", i, j)
					}
				}
				require.NoError(t, ccl.Reorder(t.Context(), c))
				sumsUp(t, c)
				half, err := c.Split(t.Context(), c.Rank()%2, 0)
				require.NoError(t, err)
				sumsUp(t, half)
				half.Close()
				whole, err := c.Split(t.Context(), 0, -c.Rank())
				require.NoError(t, err)
				sumsUp(t, whole)
				whole.Close()
			}, ccltest.Hosts(w.hosts))
		})
	}
}

// Links that are known are put into the order, which Shrink, Split and Grow keep: a slow pair is no part of the ring.
func TestOrderIsKept(t *testing.T) {
	const n = 5
	slow := func(i, j int) bool { return (i+1)%n == j || (j+1)%n == i } // all that the ranks' own order has
	links := make([][]ccl.HostLink, n)
	for i := range links {
		links[i] = make([]ccl.HostLink, n)
		for j := range links[i] {
			links[i][j] = ccl.HostLink{Bandwidth: 1e8, RoundTrip: time.Millisecond}
			if slow(i, j) {
				links[i][j].Bandwidth = 1e6
			}
		}
	}
	goes := func(t testing.TB, c *ccl.Comm, hosts ...int) {
		t.Helper()
		assert.Equal(t, hosts, ccl.OrderOf(c))
		sumsUp(t, c)
	}
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		ccl.KeepLinks(c, links)
		goes(t, c, 0, 3, 1, 4, 2)
		d, err := c.Split(t.Context(), 0, -c.Rank()) // its hosts are numbered backwards
		require.NoError(t, err)
		goes(t, d, 0, 3, 1, 4, 2)
		d.Close()
		if c.Rank() == 4 {
			c.Close()
			return
		}
		assert.Error(t, untilFailed(t.Context(), c))
		d, err = c.Shrink(t.Context())
		require.NoError(t, err)
		defer d.Close()
		assert.Equal(t, 4, d.Size())
		sumsUp(t, d)
		assert.NotEqual(t, []int{0, 1, 2, 3}, ccl.OrderOf(d)) // 0-1, 1-2 and 2-3 are slow, and one must be taken
	}, ccltest.Hosts(n), ccltest.With(ccl.Options{Order: ccl.OrderLinks}))
}

// A job that is ordered as it starts measures only the links of those that come to it.
func TestOrderLinks(t *testing.T) {
	for _, spares := range []int{0, 1} {
		t.Run(fmt.Sprint(spares, " spares"), func(t *testing.T) {
			j := newGrowing(t)
			hosts := strings.Split("abcd", "")[:3+spares]
			j.start3(3, spares, hosts, func(c *ccl.Comm) {
				for c.Size() < 4 && j.ctx.Err() == nil {
					if c.Rank() == 0 && spares == 0 {
						j.come(ccl.Options{Order: ccl.OrderLinks}, func(c *ccl.Comm, err error) {
							if assert.NoError(t, err) {
								works(j.ctx, t, c)
								c.Close()
							}
						})
						j.waits(1)
					}
					assert.NoError(t, ccl.Barrier(j.ctx, c))
					before := ccl.LinksOf(c)
					next := j.growAll(c, 4)
					after := ccl.LinksOf(next)
					for i := range 3 {
						assert.Equal(t, before[i][:3], after[i][:3], "what is known is not measured again")
					}
					c = next
				}
				works(j.ctx, t, c)
				c.Close()
			})
		})
	}
}

// start3 is start with an order by links.
func (j *growing) start3(n, spares int, hosts []string, f func(c *ccl.Comm)) {
	for r, b := range boot.Local(n+spares, hosts...) {
		j.all.Go(func() {
			defer b.Close()
			c, err := ccl.NewComm(j.ctx, b, j.options(ccl.Options{Spares: spares, Order: ccl.OrderLinks}))
			if errors.Is(err, ccl.ErrUnused) {
				return
			}
			if assert.NoError(j.t, err, "rank %d", r) {
				f(c)
			}
		})
	}
}
