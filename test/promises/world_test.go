//go:build linux

package promises

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// The promises of time between hosts, in virtual time over a network in memory. No other program is in the way there, so
// each is asserted as it stands, and not at ten times its value. What a kernel and processes add, the other tests measure.

// layout is a job: its ranks in blocks on hosts, each of which is a process.
type layout struct{ ranks, spares, hosts int }

// hosted is a job in virtual time of which one host comes to harm.
type hosted struct {
	layout
	harm func(h *simnet.Host) // befalls host 1 after a second; nil: nothing does
	rank func(t testing.TB, c *ccl.Comm, s spanned)
}

// spans are how long ranks took, from the harm on or from a moment of their own.
type spans struct {
	mu      sync.Mutex
	began   time.Time
	longest time.Duration
	count   int
}

// spanned are the spans of a rank, which is on the host that comes to harm or not: where it is its times do not count.
type spanned struct {
	*spans
	harmed bool
}

// begin is that moment.
func (s *spans) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.began = time.Now()
}

// end is when a rank has what it was promised.
func (s spanned) end() {
	if s.harmed {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.longest, s.count = max(s.longest, time.Since(s.began)), s.count+1
}

// lasts runs the job on near and on far hosts, with some seeds each, and fails where a rank takes longer than their limit. So
// many ranks must have an end.
func (j hosted) lasts(t *testing.T, ends int, near, far time.Duration) {
	t.Helper()
	for link, limit := range map[simnet.Link]time.Duration{
		{Delay: 50 * time.Microsecond}: near, {Delay: 2 * time.Millisecond, Jitter: time.Millisecond}: far,
	} {
		for seed := range uint64(times(3, 20)) {
			var s spans
			ccltest.Run(t, j.ranks, func(t testing.TB, c *ccl.Comm) {
				j.rank(t, c, spanned{&s, j.harm != nil && c.Fresh() == nil && j.host(c.Rank()) == harmed})
			}, ccltest.Hosts(j.hosts), ccltest.Spares(j.spares), ccltest.Deadline(time.Minute),
				ccltest.With(ccl.Options{PeerTimeout: peerTimeout, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}),
				ccltest.World(seed, link, func(ctx context.Context, n *simnet.Net) {
					if j.harm == nil {
						return
					}
					time.Sleep(time.Second)
					s.begin()
					j.harm(n.Host(harmed))
				}))
			what := fmt.Sprintf("%+v, %v, seed %d", j.layout, link.Delay, seed)
			require.Equal(t, ends, s.count, what)
			require.LessOrEqual(t, s.longest, limit, what)
			t.Logf("%s: %v", what, s.longest)
		}
	}
}

// harmed is the host that comes to harm.
const harmed = 1

// host is that of a rank.
func (j hosted) host(rank int) int { return rank * j.hosts / (j.ranks + j.spares) }

// isLost requires that err is the loss of a rank of that host.
func (j hosted) isLost(t testing.TB, err error) {
	t.Helper()
	var e *ccl.Error
	require.ErrorAs(t, err, &e)
	require.Equal(t, ccl.ErrRankLost, e.Code, "%v", err)
	require.Equal(t, harmed, j.host(e.Peer), "%v", err)
}

func kill(h *simnet.Host) { h.Kill(false) }

// losesAHost is what a rank does until a host is lost: those of that host are in no call, and the others wait for them.
func (j hosted) losesAHost(t testing.TB, c *ccl.Comm, s spanned) {
	t.Helper()
	if s.harmed {
		<-c.Done()
		return
	}
	j.isLost(t, ccl.Barrier(t.Context(), c))
}

func TestR1KilledHostIsNamed(t *testing.T) {
	for _, l := range []layout{{4, 0, 2}, {4, 0, 4}, {6, 0, 3}} {
		j := hosted{layout: l, harm: kill}
		j.rank = func(t testing.TB, c *ccl.Comm, s spanned) {
			j.losesAHost(t, c, s)
			s.end()
		}
		j.lasts(t, l.ranks-l.ranks/l.hosts, 100*time.Millisecond, 100*time.Millisecond)
	}
}

// The others' call waits for rank 0, which lives, and is in none. The call might still end without the host that is lost,
// if that had done its part: so it goes on for a second first, as package plane's lastCallFor says.
func TestR1KilledHostIsNamedWhereARankIsIdle(t *testing.T) {
	j := hosted{layout: layout{4, 0, 4}, harm: kill}
	j.rank = func(t testing.TB, c *ccl.Comm, s spanned) {
		if c.Rank() == 0 || s.harmed {
			<-c.Done()
			time.Sleep(2 * time.Second) // rank 0 leaves the job after the others
			return
		}
		j.isLost(t, ccl.Broadcast(t.Context(), c, []int{0}, 0))
		s.end()
	}
	j.lasts(t, 2, time.Second+100*time.Millisecond, time.Second+100*time.Millisecond)
}

// A host that stands still, and goes on when it has been given up; and one that is silent since it has no power.
func TestR2StoppedHostIsNamed(t *testing.T) {
	for _, harm := range []func(h *simnet.Host){
		func(h *simnet.Host) {
			h.Stop()
			time.Sleep(4 * peerTimeout)
			h.Go()
		},
		func(h *simnet.Host) { h.Kill(true) },
	} {
		for _, l := range []layout{{3, 0, 3}, {6, 0, 3}} {
			j := hosted{layout: l, harm: harm}
			j.rank = func(t testing.TB, c *ccl.Comm, s spanned) {
				j.losesAHost(t, c, s)
				s.end()
			}
			j.lasts(t, l.ranks-l.ranks/l.hosts, peerTimeout+time.Second, peerTimeout+time.Second)
		}
	}
}

// One rank makes another call than the rest.
func TestR4MismatchBetweenHosts(t *testing.T) {
	for _, l := range []layout{{4, 0, 4}, {6, 0, 3}} {
		j := hosted{layout: l, rank: func(t testing.TB, c *ccl.Comm, s spanned) {
			ccltest.Barrier(t, c)
			s.begin()
			x := make([]float32, 100+c.Rank()/2%2)
			var err error
			for err == nil {
				err = ccl.AllReduce(t.Context(), c, x, x, ccl.Sum)
			}
			require.ErrorIs(t, err, ccl.ErrMismatch)
			s.end()
		}}
		j.lasts(t, l.ranks, 200*time.Millisecond, 200*time.Millisecond)
	}
}

// A rank leaves in good order before any other has connected with it.
func TestR12ClosedUnmetBetweenHosts(t *testing.T) {
	for _, tc := range []struct {
		layout
		leaves int
	}{{layout{4, 0, 4}, 3}, {layout{4, 0, 4}, 1}, {layout{4, 0, 2}, 2}, {layout{4, 0, 2}, 3}} {
		j := hosted{layout: tc.layout, rank: func(t testing.TB, c *ccl.Comm, s spanned) {
			s.begin()
			if c.Rank() == tc.leaves {
				require.NoError(t, c.Close())
				return
			}
			err := ccl.AllReduce(t.Context(), c, []int{0}, []int{1}, ccl.Sum)
			var e *ccl.Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, []any{ccl.ErrClosed, tc.leaves}, []any{e.Code, e.Peer}, "%v", err)
			s.end()
		}}
		j.lasts(t, tc.ranks-1, 50*time.Millisecond, 50*time.Millisecond)
	}
}

// A host is killed and spares wait: all have made a call together again.
func TestR17ReplacedBetweenHosts(t *testing.T) {
	for _, l := range []layout{{4, 1, 5}, {4, 2, 3}} {
		j := hosted{layout: l, harm: kill}
		j.rank = func(t testing.TB, c *ccl.Comm, s spanned) {
			if len(c.Fresh()) == 0 {
				j.losesAHost(t, c, s)
				next, err := c.Replace(t.Context())
				require.NoError(t, err)
				defer next.Close()
				c = next
			}
			x := []int{c.Rank()}
			require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
			require.Equal(t, 0+1+2+3, x[0])
			s.end()
		}
		j.lasts(t, l.ranks, 100*time.Millisecond, 200*time.Millisecond) // of some thirty trips
	}
}

// The ranks of a host are killed at once: the Shrink of the others is not held up by the second.
func TestR21ShrinkAfterAHostOfTheWorld(t *testing.T) {
	for _, l := range []layout{{6, 0, 3}, {8, 0, 4}} {
		j := hosted{layout: l, harm: kill}
		j.rank = func(t testing.TB, c *ccl.Comm, s spanned) {
			j.losesAHost(t, c, s)
			s.begin()
			next, err := c.Shrink(t.Context())
			require.NoError(t, err)
			s.end()
			defer next.Close()
			require.Equal(t, []int{l.ranks - 2, l.hosts - 1}, []int{next.Size(), next.Place().Nodes})
		}
		j.lasts(t, l.ranks-2, 50*time.Millisecond, 50*time.Millisecond)
	}
}
