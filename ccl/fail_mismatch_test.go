package ccl_test

import (
	"context"
	"fmt"
	"regexp"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

// call is one call of some kind, on c.
type call func(ctx context.Context, c *ccl.Comm) error

func reduceAll[T ccl.Number](n int, op ccl.Op) call {
	return func(ctx context.Context, c *ccl.Comm) error {
		x := make([]T, n)
		return ccl.AllReduce(ctx, c, x, x, op)
	}
}

func broadcast(n, root int) call {
	return func(ctx context.Context, c *ccl.Comm) error { return ccl.Broadcast(ctx, c, make([]float32, n), root) }
}

func reduceTo(n, root int) call {
	return func(ctx context.Context, c *ccl.Comm) error {
		x := make([]float32, n)
		return ccl.Reduce(ctx, c, x, x, ccl.Sum, root)
	}
}

func gatherAll(counts ...int) call {
	return func(ctx context.Context, c *ccl.Comm) error {
		total := 0
		for _, n := range counts {
			total += n
		}
		return ccl.AllGatherV(ctx, c, make([]float32, total), counts, make([]float32, counts[c.Rank()]))
	}
}

func numbered(n, number int) call {
	return func(ctx context.Context, c *ccl.Comm) error {
		q := c.On(ccl.Now).Numbered(number)
		return q.AllGather(ccl.BufOf(make([]float32, n*c.Size())), ccl.BufOf(make([]float32, n))).Wait(ctx)
	}
}

func exchange(n int) call {
	return func(ctx context.Context, c *ccl.Comm) error {
		return ccl.AllToAll(ctx, c, make([]float32, 3*n), make([]float32, 3*n))
	}
}

// Ranks 0 and 2 agree; rank 1 makes another call.
var mismatches = []struct {
	name       string
	most, odd  call
	mine, odds string // as most and the odd one see the two
}{
	{"kind", reduceAll[float32](100, ccl.Sum), broadcast(100, 0), "AllReduce float x 100 sum", "Broadcast float x 100 root 0"},
	{"count", reduceAll[float32](1000, ccl.Sum), reduceAll[float32](1001, ccl.Sum), "AllReduce float x 1000 sum", "AllReduce float x 1001 sum"},
	{"much larger", reduceAll[float32](10, ccl.Sum), reduceAll[float32](1<<20, ccl.Sum), "AllReduce float x 10 sum", "AllReduce float x 1048576 sum"},
	{"type", reduceAll[float32](8, ccl.Sum), reduceAll[int32](8, ccl.Sum), "AllReduce float x 8 sum", "AllReduce int32 x 8 sum"},
	{"operator", reduceAll[float32](8, ccl.Sum), reduceAll[float32](8, ccl.Max), "AllReduce float x 8 sum", "AllReduce float x 8 max"},
	{"root of Broadcast", broadcast(8, 0), broadcast(8, 1), "Broadcast float x 8 root 0", "Broadcast float x 8 root 1"},
	{"root of Reduce", reduceTo(8, 2), reduceTo(8, 0), "Reduce float x 8 sum root 2", "Reduce float x 8 sum root 0"},
	{"counts", gatherAll(1, 2, 3), gatherAll(3, 2, 1), "AllGatherV float x 6", "AllGatherV float x 6"},
	{"number", numbered(8, 3), numbered(8, 4), "AllGather float x 8 number 3", "AllGather float x 8 number 4"},
	{"a number and none", numbered(8, 1), numbered(8, 0), "AllGather float x 8 number 1", "AllGather float x 8"},
	{"barrier", ccl.Barrier, exchange(4), "Barrier", "AllToAll float x 4"},
	{"split", func(ctx context.Context, c *ccl.Comm) error { return second(c.Split(ctx, 0, 0)) }, ccl.Barrier, "Split", "Barrier"},
}

var callSite = regexp.MustCompile(` at [\w.-]+/\w+\.go:\d+`)

// A call that differs on rank 1 is an ErrMismatch on every rank, at the latest in the
// call after it. The two that met have both calls, and say so.
func TestMismatch(t *testing.T) {
	for _, check := range []ccl.Check{ccl.CheckAsync, ccl.CheckStrict} {
		t.Run(check.String(), func(t *testing.T) {
			for _, tc := range mismatches {
				t.Run(tc.name, func(t *testing.T) {
					// A rank that is not told would wait for the others: not long here.
					o := &ccl.Options{Check: check, Timeout: 5 * time.Second}
					var met atomic.Int32
					everywhere(t, 3, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
						works(ctx, t, c)
						meet(ctx)
						mine, theirs := tc.most, tc.odds
						here := tc.mine
						if c.Rank() == 1 {
							mine, here, theirs = tc.odd, tc.odds, tc.mine
						}
						err := mine(ctx, c)
						if err == nil && check != ccl.CheckStrict {
							here = "Barrier"
							err = ccl.Barrier(ctx, c)
						}
						e := wants(t, err, ccl.ErrMismatch)
						assert.NotEqual(t, c.Rank(), e.Peer)
						if e.Theirs != nil {
							met.Add(1)
						}
						if e.Theirs != nil && e.Theirs.Seq == 2 && c.Rank() == 1 != (e.Peer == 1) && here != "Barrier" {
							want := fmt.Sprintf("ccl: rank %d: call #2 differs: here %s, rank %d has %s", c.Rank(), here, e.Peer, theirs)
							if here == theirs { // the counts are not part of the text
								want = fmt.Sprintf("ccl: rank %d: AllGatherV #2 float x 6: rank %d made different calls before it, or used different counts or factors", c.Rank(), e.Peer)
							}
							// Where the call was made is known if it had waited for long.
							assert.Equal(t, want, callSite.ReplaceAllString(e.Error(), ""))
						}
						wants(t, ccl.Barrier(ctx, c), ccl.ErrMismatch) // for good
					})
					assert.GreaterOrEqual(t, met.Load(), int32(len(places)), "someone has met another")
				})
			}
		})
	}
}

// Two calls in another order.
func TestMismatchOfOrder(t *testing.T) {
	o := &ccl.Options{Timeout: 5 * time.Second}
	a, b := reduceAll[float32](4, ccl.Sum), reduceAll[float32](4, ccl.Max)
	everywhere(t, 3, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		first, then := a, b
		if c.Rank() == 2 {
			first, then = b, a
		}
		err := first(ctx, c)
		if err == nil {
			err = then(ctx, c)
		}
		wants(t, err, ccl.ErrMismatch)
	})
}

// A call that one rank leaves out is found by the next one it makes.
func TestMismatchByACallLeftOut(t *testing.T) {
	o := &ccl.Options{Timeout: 5 * time.Second}
	everywhere(t, 3, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() != 1 {
			err := broadcast(4, 0)(ctx, c)
			if err == nil {
				err = sum(ctx, c)
			}
			wants(t, err, ccl.ErrMismatch)
			return
		}
		wants(t, sum(ctx, c), ccl.ErrMismatch)
	})
}

// Two ranks disagree about a call to which the third has not come, which hears of both.
func TestMismatchOfOthers(t *testing.T) {
	o := &ccl.Options{Timeout: 5 * time.Second}
	everywhere(t, 3, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 2 {
			<-c.Done()
		}
		err := broadcast(4, 0)(ctx, c) // its root waits for nobody, rank 1 for the root
		switch c.Rank() {
		case 0:
			err = reduceAll[float32](4, ccl.Sum)(ctx, c)
		case 1:
			err = reduceAll[float32](4, ccl.Max)(ctx, c)
		}
		e := wants(t, err, ccl.ErrMismatch)
		if c.Rank() < 2 {
			assert.Equal(t, 1-c.Rank(), e.Peer)
			return
		}
		want := "ccl: rank 2: Broadcast #1 float x 4 root 0: ranks disagree about the call at rank %d: call #2 is AllReduce float x 4 %s there, and AllReduce float x 4 %s at rank %d"
		switch text := callSite.ReplaceAllString(e.Error(), ""); e.Peer {
		case 0:
			assert.Equal(t, fmt.Sprintf(want, 0, "sum", "max", 1), text)
		default:
			assert.Equal(t, fmt.Sprintf(want, 1, "max", "sum", 0), text)
		}
	})
}

// A Send and the Recv for it that do not fit.
func TestMismatchOfSend(t *testing.T) {
	for _, tc := range []struct {
		name       string
		send, recv call
		sent, want string
	}{
		{"count",
			func(ctx context.Context, c *ccl.Comm) error { return ccl.Send(ctx, c, make([]int32, 3), 1) },
			func(ctx context.Context, c *ccl.Comm) error { return ccl.Recv(ctx, c, make([]int32, 4), 0) },
			"Send int32 x 3 peer 1", "Recv int32 x 4 peer 0"},
		{"type",
			func(ctx context.Context, c *ccl.Comm) error { return ccl.Send(ctx, c, make([]int32, 4), 1) },
			func(ctx context.Context, c *ccl.Comm) error { return ccl.Recv(ctx, c, make([]float32, 4), 0) },
			"Send int32 x 4 peer 1", "Recv float x 4 peer 0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, check := range []ccl.Check{ccl.CheckAsync, ccl.CheckStrict} {
				o := &ccl.Options{Check: check, Timeout: 5 * time.Second}
				everywhere(t, 2, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
					if c.Rank() == 1 {
						e := wants(t, tc.recv(ctx, c), ccl.ErrMismatch)
						assert.Equal(t, 0, e.Peer)
						assert.Contains(t, callSite.ReplaceAllString(e.Error(), ""), "here "+tc.want+", rank 0 has "+tc.sent)
						return
					}
					err := tc.send(ctx, c)
					if err == nil && check != ccl.CheckStrict {
						err = ccl.Barrier(ctx, c)
					}
					e := wants(t, err, ccl.ErrMismatch)
					assert.Equal(t, 1, e.Peer)
					if assert.NotNil(t, e.Theirs) {
						assert.Equal(t, ccl.KindRecv, e.Theirs.Kind)
					}
				})
			}
		})
	}
}

// The same inside a group: the record is that of the call, not of an earlier one.
func TestMismatchInAGroup(t *testing.T) {
	o := &ccl.Options{Timeout: 5 * time.Second}
	everywhere(t, 2, o, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		works(ctx, t, c)
		meet(ctx)
		other := 1 - c.Rank()
		err := c.On(nil).Group(func(g ccl.Queue) error {
			g.Send(ccl.BufOf(make([]int, 3)), other)
			g.Recv(ccl.BufOf(make([]int, 3+c.Rank())), other)
			return nil
		}).Wait(ctx)
		if err == nil {
			err = ccl.Barrier(ctx, c)
		}
		e := wants(t, err, ccl.ErrMismatch)
		assert.Equal(t, other, e.Peer)
		if e.Theirs != nil {
			assert.Contains(t, []ccl.Kind{ccl.KindSend, ccl.KindRecv, ccl.KindGroup}, e.Theirs.Kind)
		}
	})
}

// The root of Broadcast runs ahead of a rank that is in another call: what that rank
// reads of the root's call must not be overwritten meanwhile (under -race, a report).
func TestMismatchWhileTheRootRunsAhead(t *testing.T) {
	for range 20 {
		together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
			if c.Rank() == 1 {
				e := wants(t, sum(ctx, c), ccl.ErrMismatch)
				assert.Equal(t, 0, e.Peer)
				return
			}
			var err error
			for range 100 {
				if err = broadcast(1, 0)(ctx, c); err != nil {
					break
				}
			}
			wants(t, err, ccl.ErrMismatch)
		})
	}
}

// CheckOff trusts the caller: types of one size are one to it.
func TestCheckOff(t *testing.T) {
	everywhere(t, 2, &ccl.Options{Check: ccl.CheckOff}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		x, y := []int32{1}, []uint32{1}
		if c.Rank() == 0 {
			assert.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
			assert.Equal(t, []int32{2}, x)
		} else {
			assert.NoError(t, ccl.AllReduce(ctx, c, y, y, ccl.Sum))
			assert.Equal(t, []uint32{2}, y)
		}
	})
}
