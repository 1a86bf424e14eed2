package ccl_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// linkSizes are messages that travel with their head, and that do not.
var linkSizes = []int{0, 1, 5000, 40000}

// ramp is n numbers that no other message has.
func ramp(n, from int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(i + from*1000003)
	}
	return x
}

// exchangeLinks sends to all ranks, and receives from all, whatever order they come in, while c is in a call.
func exchangeLinks(ctx context.Context, t testing.TB, c *ccl.Comm) {
	busy := c.On(nil).Barrier() // which ranks enter early and late
	for tag, n := range linkSizes {
		var all []ccl.Message
		got := make([][]int32, c.Size())
		for r := range c.Size() {
			got[r] = make([]int32, n)
			all = append(all, ccl.LinkTo(c, r, tag).Send(ccl.BufOf(ramp(n, c.Rank()))))
		}
		for r := range c.Size() {
			all = append(all, ccl.LinkTo(c, r, tag).Recv(ccl.BufOf(got[r])))
		}
		for _, m := range all {
			require.NoError(t, m.Wait(ctx))
		}
		for r := range got {
			require.Equal(t, ramp(n, r), got[r], "from rank %d", r)
		}
	}
	require.NoError(t, busy.Wait(ctx))
}

// anySource has rank 0 receive from whoever comes.
func anySource(ctx context.Context, t testing.TB, c *ccl.Comm) {
	if c.Rank() > 0 {
		for _, n := range linkSizes {
			require.NoError(t, ccl.LinkTo(c, 0, 50+n).Send(ccl.BufOf(ramp(n, c.Rank()))).Wait(ctx))
		}
		return
	}
	for _, n := range linkSizes {
		from := map[int]bool{}
		for range c.Size() - 1 {
			got := make([]int32, n)
			m := ccl.LinkTo(c, ccl.AnySource, 50+n).Recv(ccl.BufOf(got))
			require.NoError(t, m.Wait(ctx))
			require.Equal(t, ramp(n, m.From()), got)
			require.False(t, from[m.From()], "a message twice")
			from[m.From()] = true
		}
		require.Len(t, from, c.Size()-1)
	}
}

func TestLinks(t *testing.T) {
	everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		exchangeLinks(ctx, t, c)
		anySource(ctx, t, c)
		odd, err := c.Split(ctx, c.Rank()%2, -c.Rank()) // in which ranks have other numbers
		if assert.NoError(t, err) {
			exchangeLinks(ctx, t, odd)
			anySource(ctx, t, odd)
			assert.NoError(t, odd.Close())
		}
		works(ctx, t, c)
	})
}

func TestLinksOfProcesses(t *testing.T) {
	for name, opts := range map[string][]ccltest.Option{
		"one host":  {ccltest.Processes(3)},
		"two hosts": {ccltest.Processes(3), ccltest.Hosts(2)},
		// each process has a rank on each host
		"two hosts in turn": {ccltest.Processes(2), ccltest.RoundRobin(2)},
	} {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				exchangeLinks(t.Context(), t, c)
				anySource(t.Context(), t, c)
				large := ramp(1<<20, c.Rank()) // which is read where it lies
				got := make([]int32, len(large))
				next, before := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
				sent := ccl.LinkTo(c, next, 0).Send(ccl.BufOf(large))
				require.NoError(t, ccl.LinkTo(c, before, 0).Recv(ccl.BufOf(got)).Wait(t.Context()))
				require.NoError(t, sent.Wait(t.Context()))
				require.Equal(t, ramp(len(got), before), got)
			}, opts...)
		})
	}
}

// A message that nobody meets ends by itself, and c goes on; one that is given up is as if it had never been.
func TestLinkEnds(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		peer := 1 - c.Rank()
		one := ccl.BufOf([]float32{1})
		e := wants(t, ccl.LinkTo(c, peer, 7).Within(30*time.Millisecond).Recv(one).Wait(ctx), ccl.ErrTimeout)
		assert.Equal(t, []int{peer}, e.Missing)
		assert.Equal(t, "Recv", e.Op)
		assert.ErrorContains(t, e, fmt.Sprintf("timed out at rank %d: it has sent no such message within 30ms", peer))
		unmet := ccl.LinkTo(c, peer, 6).Within(30 * time.Millisecond).Send(ccl.BufOf(make([]float32, 1<<16)))
		assert.ErrorContains(t, unmet.Wait(ctx), fmt.Sprintf("timed out at rank %d: it has not received the message within 30ms", peer))
		wants(t, ccl.LinkTo(c, ccl.AnySource, 7).Within(30*time.Millisecond).Recv(one).Wait(ctx), ccl.ErrTimeout)
		m := ccl.LinkTo(c, peer, 8).Recv(one)
		done, err := m.Test()
		assert.False(t, done)
		assert.NoError(t, err)
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		wants(t, m.Wait(short), ccl.ErrTimeout)
		told := make(chan error, 1)
		m.OnDone(func(err error) { told <- err })
		m.Cancel()
		wants(t, m.Wait(ctx), ccl.ErrCanceled)
		wants(t, <-told, ccl.ErrCanceled)
		meet(ctx)
		large := ccl.LinkTo(c, peer, 8).Send(ccl.BufOf(make([]float32, 1<<16)))
		large.Cancel()
		wants(t, large.Wait(ctx), ccl.ErrCanceled)
		meet(ctx)
		if c.Rank() == 0 {
			e := wants(t, ccl.LinkTo(c, 1, 9).Send(ccl.BufOf(make([]float32, 1<<16))).Wait(ctx), ccl.ErrMismatch)
			assert.Equal(t, 1, e.Peer)
			assert.ErrorContains(t, e, "it wants int8 x 3")
		} else {
			e := wants(t, ccl.LinkTo(c, 0, 9).Recv(ccl.BufOf(make([]int8, 3))).Wait(ctx), ccl.ErrMismatch)
			assert.Equal(t, 0, e.Peer)
		}
		works(ctx, t, c)
	})
}

// Whoever waits for a rank that has closed the Comm, or for one that is lost, is told which.
func TestLinkToWhoLeaves(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		sub, err := c.Split(ctx, 0, 0)
		require.NoError(t, err)
		one := []float32{1}
		if c.Rank() == 2 {
			require.NoError(t, ccl.LinkTo(sub, 0, 0).Send(ccl.BufOf(one)).Wait(ctx))
			sub.Close()
			wants(t, ccl.LinkTo(sub, 0, 0).Send(ccl.BufOf(one)).Wait(ctx), ccl.ErrClosed)
			meet(ctx)
		} else {
			meet(ctx)
			if c.Rank() == 0 {
				require.NoError(t, ccl.LinkTo(sub, 2, 0).Recv(ccl.BufOf(one)).Wait(ctx), "what was sent before")
				e := wants(t, ccl.LinkTo(sub, 2, 0).Recv(ccl.BufOf(one)).Wait(ctx), ccl.ErrClosed)
				assert.Equal(t, 2, e.Peer)
			}
			sub.Close()
		}
		m := ccl.LinkTo(c, (c.Rank()+1)%3, 1).Recv(ccl.BufOf(one))
		any := ccl.LinkTo(c, ccl.AnySource, 2).Recv(ccl.BufOf(one))
		meet(ctx)
		if c.Rank() == 1 {
			ccl.Die(c)
		}
		for _, m := range []ccl.Message{m, any, ccl.LinkTo(c, 0, 3).Send(ccl.BufOf(make([]int64, 1<<16)))} {
			e := wants(t, m.Wait(ctx), ccl.ErrRankLost)
			assert.Equal(t, 1, e.Peer)
		}
	})
}

// Once all others have closed the Comm, a receive from any rank gets what they had sent and what this rank sends itself, and
// waits for nothing else.
func TestAnySourceAfterAllHaveClosed(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		sub, err := c.Split(ctx, 0, 0)
		require.NoError(t, err)
		x := []int32{int32(c.Rank())}
		any := ccl.LinkTo(sub, ccl.AnySource, 0)
		waits := ccl.LinkTo(sub, ccl.AnySource, 1) // of a tag that nobody sends
		if c.Rank() > 0 {
			require.NoError(t, ccl.LinkTo(sub, 0, 0).Send(ccl.BufOf(x)).Wait(ctx))
			require.NoError(t, sub.Close())
			meet(ctx)
			return
		}
		before := waits.Recv(ccl.BufOf(make([]int32, 1)))
		meet(ctx)
		sum := int32(0)
		for range 2 {
			require.NoError(t, any.Recv(ccl.BufOf(x)).Wait(ctx))
			sum += x[0]
		}
		require.EqualValues(t, 3, sum)
		for range 2 {
			require.NoError(t, ccl.LinkTo(sub, 0, 0).Send(ccl.BufOf([]int32{7})).Wait(ctx))
			m := any.Recv(ccl.BufOf(x))
			require.NoError(t, m.Wait(ctx))
			require.Equal(t, []int{7, 0}, []int{int(x[0]), m.From()})
			for _, m := range []ccl.Message{before, waits.Recv(ccl.BufOf(x)), any.Recv(ccl.BufOf(x))} {
				e := wants(t, m.Wait(ctx), ccl.ErrClosed)
				require.Equal(t, -1, e.Peer)
				require.Contains(t, e.Error(), "Recv: all other ranks have closed the Comm")
			}
		}
		require.NoError(t, sub.Close())
	})
}

func TestLinkRefuses(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		one := ccl.BufOf([]float32{1})
		for name, m := range map[string]ccl.Message{
			"a rank that there is not": ccl.LinkTo(c, 2, 0).Send(one),
			"a negative tag":           ccl.LinkTo(c, 0, -1).Recv(one),
			"a negative limit":         ccl.LinkTo(c, 0, 0).Within(-1).Recv(one),
			"to any":                   ccl.LinkTo(c, ccl.AnySource, 0).Send(one),
			"no memory":                ccl.LinkTo(c, 0, 0).Send(ccl.Buf{}),
			"in place":                 ccl.LinkTo(c, 0, 0).Send(ccl.InPlace()),
			"no Comm":                  ccl.LinkTo(nil, 0, 0).Send(one),
			"the zero Link":            ccl.Link{}.Recv(one),
			"the zero Link, in time":   ccl.Link{}.Within(-1).Recv(one),
		} {
			assert.ErrorIs(t, m.Wait(ctx), ccl.ErrArgument, name)
			assert.Equal(t, -1, m.From(), name)
			m.Cancel()
		}
		assert.NoError(t, ccl.Message{}.Wait(ctx))
		works(ctx, t, c)
	})
}

// A message that its receiver gives up while it comes tells its sender so, and c goes on; no limit takes a message from the next receive
// with it, unless its sender is told.
func TestLinkIsGivenUp(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for i := range 5 {
			const n = 4 << 20
			if c.Rank() == 0 {
				for ended := false; !ended; {
					err := ccl.LinkTo(c, 1, 0).Send(ccl.BufOf(ramp(n, i))).Wait(ctx)
					if ended = err == nil; !ended {
						e := wants(t, err, ccl.ErrCanceled)
						assert.Equal(t, 1, e.Peer)
						assert.ErrorContains(t, err, "canceled at rank 1: its receive ended before the message had come whole")
					}
				}
			} else {
				got := make([]int32, n)
				if err := ccl.LinkTo(c, 0, 0).Within(time.Millisecond).Recv(ccl.BufOf(got)).Wait(ctx); err != nil {
					wants(t, err, ccl.ErrTimeout)
					require.NoError(t, ccl.LinkTo(c, 0, 0).Recv(ccl.BufOf(got)).Wait(ctx))
				}
				require.True(t, slices.Equal(ramp(n, i), got), "message %d", i) // a difference printed takes gigabytes
			}
		}
		works(ctx, t, c)
	})
}

// What waited on Comms that are closed by now, for a rank that used no Link of them, does not count any more: a small message is complete
// before it is received.
func TestLinkCredit(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		small := make([]byte, 8)
		for range 70 {
			sub, err := c.Split(ctx, 0, c.Rank())
			require.NoError(t, err)
			if c.Rank() == 0 {
				require.NoError(t, ccl.LinkTo(sub, 1, 3).Within(20*time.Second).Send(ccl.BufOf(make([]byte, 16<<10))).Wait(ctx))
			}
			require.NoError(t, ccl.Barrier(ctx, sub))
			require.NoError(t, sub.Close())
		}
		if c.Rank() == 0 {
			require.NoError(t, ccl.LinkTo(c, 1, 9).Within(20*time.Second).Send(ccl.BufOf(small)).Wait(ctx))
		}
		meet(ctx)
		if c.Rank() == 1 {
			require.NoError(t, ccl.LinkTo(c, 0, 9).Recv(ccl.BufOf(small)).Wait(ctx))
		}
		works(ctx, t, c)
	})
}

// A small message to a rank whose process has used no Link yet, on this host or another, is complete before it is received.
func TestLinkToOneThatUsesNone(t *testing.T) {
	inWorlds(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, x := t.Context(), []int64{0}
		if c.Rank() == 0 {
			x[0] = 7
			require.NoError(t, ccl.LinkTo(c, 1, 9).Within(20*time.Second).Send(ccl.BufOf(x)).Wait(ctx))
		}
		require.NoError(t, ccl.Barrier(ctx, c))
		if c.Rank() == 1 {
			require.NoError(t, ccl.LinkTo(c, 0, 9).Recv(ccl.BufOf(x)).Wait(ctx))
			require.Equal(t, []int64{7}, x)
		}
	})
}

// OnDone of a message may send and receive for as long as it likes.
func TestLinkOnDoneGoesOn(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		l, done, x := ccl.LinkTo(c, c.Rank(), 1), make(chan error, 1), make([]int64, 1)
		var next func(error)
		next = func(err error) {
			if err != nil || x[0] == 2000 {
				done <- err
				return
			}
			sent := []int64{x[0] + 1}
			l.Recv(ccl.BufOf(x)).OnDone(next)
			l.Send(ccl.BufOf(sent))
		}
		next(nil)
		require.NoError(t, <-done)
		works(ctx, t, c)
	})
}

// A message that has found c open and opens its mail when c is closed does not keep others from hearing that it is.
func TestLinkOpensAsTheCommCloses(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		sub, err := c.Split(ctx, 0, c.Rank())
		require.NoError(t, err)
		if c.Rank() == 1 {
			assert.NoError(t, sub.Close())
			assert.NoError(t, ccl.OpenMail(sub))
		}
		meet(ctx)
		if c.Rank() == 0 {
			e := wants(t, ccl.LinkTo(sub, 1, 3).Within(5*time.Second).Send(ccl.BufOf(make([]byte, 1<<20))).Wait(ctx), ccl.ErrClosed)
			assert.Equal(t, 1, e.Peer)
			assert.NoError(t, sub.Close())
		}
		works(ctx, t, c)
	})
}
