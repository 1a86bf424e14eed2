package cpu

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// A collective that a library makes gets a place among the calls, a message none; the monitor sees that one is under way
// until it ends.
func TestBeginAndEnd(t *testing.T) {
	c := comms(t, []string{"a", "a"})[0]
	start := c.rank.Order.Calls
	for i, tc := range []struct {
		kind  call.Kind
		place uint64
	}{{call.AllReduce, start + 1}, {call.Send, 0}, {call.SendRecv, 0}, {call.Recv, 0}, {call.Broadcast, start + 2}} {
		k := callOf(tc.kind, 0, 4, nil, nil)
		k.Place = 77
		require.Nil(t, watched(c).begin(t.Context(), k, false))
		assert.Equal(t, tc.place, k.Place, "call %d", i)
		assert.Equal(t, plane.ForeignCall|uint64(c.rank.Current.Since()), c.rank.Standing.Elsewhere.Foreign.Load(), "call %d", i)
		require.Nil(t, watched(c).end(k, nil))
		assert.Zero(t, c.rank.Standing.Elsewhere.Foreign.Load(), "call %d", i)
	}
	assert.Equal(t, start+2, c.rank.Order.Calls)
	for _, kind := range []call.Kind{call.Send, call.AllGather} {
		require.Nil(t, watched(c).Enter(callOf(kind, 0, 4, nil, nil), false))
	}
	assert.Equal(t, start+3, c.rank.Order.Calls)
}

// What a library says at the end of a call becomes a fault, unless the Comm has failed before: then its cause is the fault,
// but a call that is done stays done, unless the ranks disagreed about it.
func TestEndTells(t *testing.T) {
	broken := errors.New("NCCL: unhandled system error")
	lost := call.NewFault(call.RankLost, 1, "its process ended")
	mismatch := call.NewFault(call.Mismatch, 1, "")
	for _, tc := range []struct {
		name  string
		cause *call.Fault
		err   error
		code  call.Code // 0: none
		peer  int
	}{
		{"done", nil, nil, 0, 0},
		{"an error of the library", nil, broken, call.Backend, 0},
		{"the context has ended", nil, context.Canceled, call.Canceled, 0},
		{"its time is over", nil, fmt.Errorf("the call: %w", context.DeadlineExceeded), call.Timeout, 1},
		{"a consequence", lost, broken, call.RankLost, 1},
		{"done before the failure", lost, nil, 0, 0},
		{"done, but not the same call", mismatch, nil, call.Mismatch, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := comms(t, []string{"a", "a"})[0]
			k := callOf(call.AllReduce, -1, 4, nil, nil)
			require.Nil(t, watched(c).begin(t.Context(), k, false))
			if tc.cause != nil {
				require.True(t, c.rank.FailHere(tc.cause))
			}
			f := watched(c).end(k, tc.err)
			if tc.code == 0 {
				require.Nil(t, f)
				return
			}
			require.NotNil(t, f)
			assert.Equal(t, tc.code, f.Code)
			assert.Equal(t, tc.peer, f.Peer)
			assert.Same(t, f, c.Failure())
			again := watched(c).begin(t.Context(), k, false)
			assert.Same(t, f, again, "no call begins after a failure")
		})
	}
	c := comms(t, []string{"a"})[0]
	ctx, stop := context.WithCancel(t.Context())
	stop()
	f := watched(c).begin(ctx, callOf(call.AllReduce, -1, 4, nil, nil), false)
	require.NotNil(t, f)
	assert.Equal(t, call.Canceled, f.Code)
}

// With meet, no rank goes on before all have the same call, on one host and on several; ranks with other calls are told.
func TestMeet(t *testing.T) {
	for _, hosts := range [][]string{{"a", "a", "a"}, {"a", "b", "b"}} {
		for _, issue := range []bool{false, true} {
			t.Run(fmt.Sprint(hosts, issue), func(t *testing.T) {
				begin := func(c *Comm, k *call.Call) *call.Fault {
					if issue {
						return watched(c).Enter(k, true)
					}
					return watched(c).begin(t.Context(), k, true)
				}
				all := comms(t, hosts)
				each(t, all, func(c *Comm) error {
					if f := begin(c, callOf(call.AllReduce, -1, 4, nil, nil)); f != nil {
						return f
					}
					for r := range all { // all of this host have entered
						if c.rank.Group.Topology().Node(r) == c.rank.Group.Topology().Node(c.Rank()) {
							if place, _ := c.rank.Share.Local.Collective(c.rank.Group.Topology().Local(r)); place < c.rank.Order.Calls {
								return fmt.Errorf("rank %d has not come", r)
							}
						}
					}
					return nil
				})
				each(t, all, func(c *Comm) error {
					f := begin(c, callOf(call.AllReduce, -1, 4+c.Rank()/2, nil, nil))
					if f == nil || f.Code != call.Mismatch {
						return fmt.Errorf("another count: %v", f)
					}
					return nil
				})
			})
		}
	}
}

// The monitor watches over a call inside a library: ranks that are there in different calls are told, and one that waits
// there for a rank that closes the Comm.
func TestForeignCallIsWatched(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(all []*Comm)
		code call.Code
	}{
		{"another call", func(all []*Comm) {
			for _, c := range all {
				assert.Nil(t, watched(c).begin(t.Context(), callOf(call.AllReduce, -1, 4+c.Rank(), nil, nil), false))
			}
		}, call.Mismatch},
		{"the other closes", func(all []*Comm) {
			assert.Nil(t, watched(all[0]).begin(t.Context(), callOf(call.AllReduce, -1, 4, nil, nil), false))
			all[1].Close()
		}, call.Closed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := comms(t, []string{"a", "a"})
			tc.do(all)
			select {
			case <-all[0].rank.Fate.Context().Done():
			case <-time.After(10 * time.Second):
				t.Fatal("nobody has noticed")
			}
			assert.Equal(t, tc.code, all[0].Failure().Code)
			assert.Equal(t, 1, all[0].Failure().Peer)
			all[0].rank.Inside(false)
			assert.Zero(t, all[0].rank.Standing.Elsewhere.Foreign.Load())
		})
	}
}

// Where a library connects inside its calls, the first of each kind and size is known, and the first message to and from each rank.
func TestFirst(t *testing.T) {
	c := comms(t, []string{"a", "a"})[0]
	for _, connects := range []bool{true, false} {
		b := c.Beside(nil, &engine.Library{Connects: connects}, nil)
		for i, tc := range []struct {
			kind       call.Kind
			peer, to   int
			count      uint64
			meansFirst bool
		}{
			{call.AllReduce, -1, 0, 4, true}, {call.AllReduce, -1, 0, 4, false}, {call.AllReduce, -1, 0, 7, false}, {call.AllReduce, -1, 0, 8, true},
			{call.Broadcast, 0, 0, 4, true}, {call.Broadcast, 1, 0, 5, false}, {call.Barrier, -1, 0, 0, true}, {call.Barrier, -1, 0, 0, false},
			{call.Send, 1, 0, 4, true}, {call.Send, 1, 0, 400, false}, {call.Send, 0, 0, 4, true}, {call.Recv, 1, 0, 4, true}, {call.Recv, 1, 0, 4, false},
			{call.SendRecv, 1, 1, 4, false}, {call.SendRecv, 0, 1, 4, true}, {call.SendRecv, 0, 1, 4, false},
		} {
			k := &call.Call{Head: op.Head{Record: call.Record{Kind: tc.kind, Type: op.Int32, Root: int32(tc.peer), Count: tc.count}, To: tc.to}}
			assert.Equal(t, connects && tc.meansFirst, b.First(k), "call %d, %v", i, tc.kind)
		}
	}
}

// moved is an engine that says of its calls what the test wants.
type moved struct {
	engine.Lacking
	run func() error
}

func (m *moved) Supports(op.Kind, op.Type, op.Op, bool) error { return nil }
func (m *moved) Run(context.Context, []*op.Call) error        { return m.run() }
func (m *moved) Abort()                                       {}
func (m *moved) Close() error                                 { return nil }

// What a library says of its calls is the Comm's fault, as it is to be told; calls that are inside end with their context.
func TestBesideRun(t *testing.T) {
	broken := errors.New("unhandled system error")
	for _, tc := range []struct {
		name string
		run  func(b *Beside, cancel func()) error
		code call.Code // 0: none
		want error
	}{
		{"done", func(*Beside, func()) error { return nil }, 0, nil},
		{"an error of the library", func(*Beside, func()) error { return broken }, call.Backend, broken},
		{"the context ends inside", func(b *Beside, cancel func()) error {
			cancel()
			<-b.comm.rank.Fate.Context().Done() // as Abort ends a call
			return broken
		}, call.Canceled, context.Canceled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := comms(t, []string{"a", "a"})
			c := all[0]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			m := &moved{}
			b := c.Beside(m, &engine.Library{}, func(err error) error { return fmt.Errorf("told: %w", err) })
			m.run = func() error {
				assert.True(t, b.Running())
				return tc.run(b, cancel)
			}
			err := b.Run(ctx, []*call.Call{callOf(call.AllReduce, -1, 4, nil, nil), callOf(call.Broadcast, 0, 4, nil, nil)})
			assert.False(t, b.Running())
			assert.Zero(t, c.rank.Standing.Elsewhere.Foreign.Load())
			if tc.code == 0 {
				require.NoError(t, err)
				require.Nil(t, c.Failure())
				return
			}
			var f *call.Fault
			require.ErrorAs(t, err, &f)
			assert.Equal(t, tc.code, f.Code)
			assert.ErrorIs(t, f, tc.want)
			assert.Same(t, f, c.Failure())
			if tc.want == broken {
				assert.EqualError(t, f, "told: unhandled system error")
			}
		})
	}
}

// The CPU engine is an engine like any other: it answers what it lacks.
func TestIsAnEngine(t *testing.T) {
	c := comms(t, []string{"a", "a"})[0]
	e := engine.Engine(c)
	require.NoError(t, e.Supports(op.AllReduce, op.Float64, op.Sum, true))
	require.NoError(t, e.Supports(op.AllReduce, op.Float8E4M3, op.Sum, true))
	require.EqualError(t, e.Supports(op.AllReduce, op.Float8E4M3, op.BOr, true), "the cpu engine does not reduce f8e4m3 by bor")
	require.NoError(t, e.Supports(op.Broadcast, op.Float8E4M3, op.Sum, true))
	require.Error(t, e.Supports(op.AllReduce, op.Float64, op.Sum, false))
	for name, err := range map[string]error{
		"Issue": second(e.Issue(0, nil, 0)), "Mark": second(e.Mark(0)), "Split": second(e.Split(t.Context(), engine.Group{})),
		"Shrink": second(e.Shrink(t.Context(), engine.Group{}, nil)), "Shrinks": e.Shrinks(t.Context()), "CloseApart": e.CloseApart(),
	} {
		require.ErrorIs(t, err, engine.ErrUnsupported, name)
	}
	require.Zero(t, e.Native())
	require.NoError(t, e.Err())
	require.NoError(t, e.InPlace(op.AllToAll))
	e.Abort()
	require.Nil(t, c.Failure(), "the Comm's failure ends its calls, and nothing else")
}

func second[T any](_ T, err error) error { return err }

// watched is a library beside c that does nothing.
func watched(c *Comm) *Beside {
	return c.Beside(nil, &engine.Library{}, func(err error) error { return err })
}
