package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// ask issues a sum of x, in place.
func ask[T ccl.Number](q ccl.Queue, x []T) ccl.Work {
	return q.AllReduce(ccl.BufOf(x), ccl.BufOf(x), ccl.Sum)
}

// A queued call proceeds while its caller does something else: the others complete
// theirs before rank 0 has begun to wait.
func TestQueueOverlaps(t *testing.T) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for _, n := range []int{1, 100_000} {
			x := make([]float32, n)
			x[n-1] = 1
			w := ask(c.On(nil), x)
			if c.Rank() == 0 {
				meet(ctx) // stands for computing: without rank 0's part nobody would come
			} else {
				assert.NoError(t, w.Wait(ctx))
				meet(ctx)
			}
			assert.NoError(t, w.Wait(ctx))
			assert.Equal(t, float32(3), x[n-1])
		}
	})
}

// Calls of one Comm keep their order, whatever streams they were issued to.
func TestQueueOrderAcrossStreams(t *testing.T) {
	together(t, 3, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		a, b := ccl.NewHostStream(), ccl.NewHostStream()
		defer a.Close()
		defer b.Close()
		x := []int{1}
		var last ccl.Work
		for i := range 20 {
			s := []*ccl.HostStream{a, b, b}[(i+c.Rank())%3] // not even the same one on all ranks
			last = ask(c.On(s), x)
		}
		assert.NoError(t, last.Wait(ctx))
		want := 1
		for range 20 {
			want *= 3
		}
		assert.Equal(t, []int{want}, x)
	})
}

// Two Comms and functions on one stream run in the order they were issued.
func TestQueueOrderOnOneStream(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		sub, err := c.Split(ctx, 0, -c.Rank())
		require.NoError(t, err)
		defer sub.Close()
		s := ccl.NewHostStream()
		defer s.Close()
		x := []int{1}
		for range 5 {
			ask(c.On(s), x)
			s.Do(func() error { x[0]++; return nil })
			ask(sub.On(s), x)
		}
		assert.NoError(t, s.Do(func() error { return nil }).Wait(ctx))
		want := 1
		for range 5 {
			want = 2 * (2*want + 1)
		}
		assert.Equal(t, []int{want}, x)
	})
}

// A thousand small calls: waiting for the last is enough.
func TestQueueOfAThousand(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q := c.On(nil)
		x := make([][]int, 1000)
		var w ccl.Work
		for i := range x {
			x[i] = []int{i, c.Rank()}
			w = ask(q, x[i])
		}
		assert.NoError(t, w.Wait(ctx))
		for i := range x {
			require.Equal(t, []int{2 * i, 1}, x[i])
		}
	})
}

// A blocking call comes after what was queued before it, and before what is later.
func TestBlockingWaitsForTheQueue(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		x := []int{1}
		for range 10 {
			ask(c.On(nil), x)
			assert.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
			ask(c.On(nil), x)
			sub, err := c.Split(ctx, 0, 0)
			if assert.NoError(t, err) {
				assert.NoError(t, sub.Close())
			}
		}
		assert.Equal(t, []int{1 << 30}, x)
	})
}

// A group is one call: crossing messages do not block each other, even if larger
// than any buffer, and even if to itself.
func TestGroupOfMessages(t *testing.T) {
	for _, n := range []int{0, 1, 1000, 1 << 18} { // int32: up to 1 MiB
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				r := c.Rank()
				out, in := make([][]int32, 3), make([][]int32, 3)
				for p := range 3 {
					out[p], in[p] = make([]int32, n), make([]int32, n)
					for i := range out[p] {
						out[p][i] = int32(r<<24 | p<<20 | i&0xfffff)
					}
				}
				err := c.On(nil).Group(func(g ccl.Queue) error {
					for p := range 3 {
						g.Send(ccl.BufOf(out[p]), p) // all sends first: in a row they would block
					}
					for p := range 3 {
						g.Recv(ccl.BufOf(in[p]), p)
					}
					return nil
				}).Wait(ctx)
				require.NoError(t, err)
				for p := range 3 {
					for i, v := range in[p] {
						if want := int32(p<<24 | r<<20 | i&0xfffff); v != want {
							t.Errorf("rank %d from %d at %d: %x, not %x", r, p, i, v, want)
							return
						}
					}
				}
			})
		})
	}
}

// A group in a group is part of it; an empty one is a call of no consequence.
func TestGroupNests(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		x, y := []int{1}, []int{c.Rank()}
		other := 1 - c.Rank()
		err := c.On(nil).Group(func(g ccl.Queue) error {
			ask(g, x)
			g.Group(func(h ccl.Queue) error {
				h.Send(ccl.BufOf([]int{c.Rank()}), other)
				return nil
			})
			g.Recv(ccl.BufOf(y), other)
			return nil
		}).Wait(ctx)
		assert.NoError(t, err)
		assert.Equal(t, []int{2}, x)
		assert.Equal(t, []int{other}, y)
		assert.NoError(t, c.On(nil).Group(func(ccl.Queue) error { return nil }).Wait(ctx))
		works(ctx, t, c)
	})
}

// An error from the function of a group issues nothing, and counts as a refusal.
func TestGroupRefused(t *testing.T) {
	cause := errors.New("no batch left")
	everywhere(t, 2, &ccl.Options{Timeout: 10 * time.Second}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		meet(ctx) // a refusal would fail a Comm that the other is still making
		x := []int{1}
		w := c.On(nil).Group(func(g ccl.Queue) error {
			ask(g, x)
			if c.Rank() == 1 {
				return cause
			}
			return nil
		})
		if c.Rank() == 1 {
			err := w.Wait(ctx)
			e := wants(t, err, ccl.ErrArgument)
			assert.ErrorIs(t, err, cause)
			assert.Equal(t, "Group", e.Op)
			assert.Equal(t, []int{1}, x)
			return
		}
		e := wants(t, w.Wait(ctx), ccl.ErrMismatch)
		assert.Equal(t, 1, e.Peer)
	})
}

// A call that a queue refuses keeps its place: what was before completes, every later
// Wait here returns the refusal, and the peers learn who it was.
func TestQueueRefuses(t *testing.T) {
	everywhere(t, 3, &ccl.Options{Timeout: 10 * time.Second}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q := c.On(nil)
		x, y, z := []int{1}, []int{1}, []int{1}
		before := ask(q, x)
		if c.Rank() == 1 {
			assert.NoError(t, before.Wait(ctx))
			meet(ctx)
			bad := q.Broadcast(ccl.BufOf(y), 99)
			e := wants(t, bad.Wait(ctx), ccl.ErrArgument)
			assert.Equal(t, "ccl: rank 1: Broadcast: root is 99; the ranks are 0 to 2", e.Error())
			done, err := bad.Test()
			assert.True(t, done)
			assert.Same(t, e, err)
			assert.NoError(t, before.Wait(ctx))
			assert.Same(t, e, ask(q, z).Wait(ctx)) // of a later call
			assert.ErrorIs(t, sum(ctx, c), ccl.ErrMismatch)
			return
		}
		assert.NoError(t, before.Wait(ctx))
		assert.Equal(t, []int{3}, x)
		meet(ctx)
		e := wants(t, q.Broadcast(ccl.BufOf(y), 1).Wait(ctx), ccl.ErrMismatch)
		assert.Equal(t, 1, e.Peer)
		assert.Contains(t, e.Error(), "root is 99")
		assert.Equal(t, []int{1}, y)
		wants(t, sum(ctx, c), ccl.ErrMismatch)
	})
}

// otherStream is a stream of a device that this engine does not run.
type otherStream struct{}

func (otherStream) Handle() (uintptr, bool) { return 1, true }

func TestQueueOnAnotherStream(t *testing.T) {
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		e := wants(t, ask(c.On(otherStream{}), []int{1}).Wait(ctx), ccl.ErrUnsupported)
		assert.Equal(t, "ccl: rank 0: On: the cpu backend runs on a HostStream, not on a ccl_test.otherStream", e.Error())
	})
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		var none *ccl.HostStream
		assert.NoError(t, ask(c.On(none), []int{1}).Wait(ctx)) // as nil
	})
}

func TestQueueOnAClosedStream(t *testing.T) {
	together(t, 1, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		s := ccl.NewHostStream()
		assert.NoError(t, s.Close())
		e := wants(t, ask(c.On(s), []int{1}).Wait(ctx), ccl.ErrClosed)
		assert.Contains(t, e.Error(), "HostStream")
	})
}

// Close lets what was queued end.
func TestCloseWaitsForTheQueue(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		x := make([]int, 10_000)
		x[9999] = 1
		var w ccl.Work
		for range 5 {
			w = ask(c.On(nil), x)
		}
		assert.NoError(t, c.Close())
		assert.NoError(t, w.Wait(ctx))
		assert.Equal(t, 32, x[9999])
	})
}

// Close waits no longer than PeerTimeout for a call whose peers do not come; they
// learn who has left.
func TestCloseGivesUpTheQueue(t *testing.T) {
	o := &ccl.Options{PeerTimeout: time.Second}
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) { works(ctx, t, c) })
	world(t, 2, nil, func(int) *ccl.Options { return o }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 0 {
			w := ask(c.On(nil), []int{1})
			c.Close()
			wants(t, w.Wait(ctx), ccl.ErrClosed)
			meet(ctx)
			return
		}
		meet(ctx)
		e := wants(t, sum(ctx, c), ccl.ErrClosed)
		assert.Equal(t, 0, e.Peer)
	})
}

// A number is compared and reported, and changes nothing else: not what a call returns, nor its root.
func TestNumbered(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
		c := ccltest.Split(t, world, 0, world.Rank()) // which the last call fails
		for _, n := range []int{0, 1, math.MaxInt32 - 1} {
			q := c.On(nil).Numbered(n)
			dst, sum, all := make([]int64, 3), []int64{int64(c.Rank())}, []int64{int64(7 * c.Rank())}
			works := []ccl.Work{
				q.AllGather(ccl.BufOf(dst), ccl.BufOf([]int64{int64(c.Rank())})),
				q.AllReduce(ccl.BufOf(sum), ccl.InPlace(), ccl.Sum),
				q.Broadcast(ccl.BufOf(all), 2), // which takes no number
				q.Group(func(g ccl.Queue) error { g.Barrier(); g.Barrier(); return nil }),
			}
			for i, w := range works {
				require.NoError(t, w.Wait(t.Context()), "call %d", i)
			}
			require.Equal(t, [][]int64{{0, 1, 2}, {3}, {14}}, [][]int64{dst, sum, all})
			var got []int32
			for k := range c.Trace() {
				got = append(got, k.Number, k.Root)
			}
			require.Equal(t, []int32{int32(n), -1, int32(n), -1, 0, 2, int32(n), -1, int32(n), -1}, got[len(got)-10:])
		}
		for _, n := range []int{-1, math.MaxInt32} {
			err := c.On(nil).Numbered(n).Barrier().Wait(t.Context())
			require.ErrorIs(t, err, ccl.ErrArgument)
			require.ErrorContains(t, err, "Numbered")
		}
		q, x := c.On(nil).Numbered(3), ccl.BufOf(make([]int64, 1))
		require.ErrorContains(t, q.Broadcast(x, -1).Wait(t.Context()), "root is -1; the ranks are 0 to 2")
		require.ErrorContains(t, q.Recv(x, -1).Wait(t.Context()), "peer is -1; the ranks are 0 to 2")
		c.Close()
	})
}
