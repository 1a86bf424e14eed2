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
		require.Nil(t, c.Begin(t.Context(), k, false))
		assert.Equal(t, tc.place, k.Place, "call %d", i)
		assert.Equal(t, plane.ForeignCall|uint64(c.rank.Current.Since()), c.rank.Standing.Elsewhere.Foreign.Load(), "call %d", i)
		require.Nil(t, c.End(k, nil))
		assert.Zero(t, c.rank.Standing.Elsewhere.Foreign.Load(), "call %d", i)
	}
	assert.Equal(t, start+2, c.rank.Order.Calls)
	for _, kind := range []call.Kind{call.Send, call.AllGather} {
		require.Nil(t, c.Issued(callOf(kind, 0, 4, nil, nil), false))
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
		{"the context has ended", nil, context.Canceled, call.Canceled, 1},
		{"its time is over", nil, fmt.Errorf("the call: %w", context.DeadlineExceeded), call.Timeout, 1},
		{"a consequence", lost, broken, call.RankLost, 1},
		{"done before the failure", lost, nil, 0, 0},
		{"done, but not the same call", mismatch, nil, call.Mismatch, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := comms(t, []string{"a", "a"})[0]
			k := callOf(call.AllReduce, -1, 4, nil, nil)
			require.Nil(t, c.Begin(t.Context(), k, false))
			if tc.cause != nil {
				require.True(t, c.rank.FailHere(tc.cause))
			}
			f := c.End(k, tc.err)
			if tc.code == 0 {
				require.Nil(t, f)
				return
			}
			require.NotNil(t, f)
			assert.Equal(t, tc.code, f.Code)
			assert.Equal(t, tc.peer, f.Peer)
			assert.Same(t, f, c.Failure())
			again := c.Begin(t.Context(), k, false)
			assert.Same(t, f, again, "no call begins after a failure")
		})
	}
	c := comms(t, []string{"a"})[0]
	ctx, stop := context.WithCancel(t.Context())
	stop()
	f := c.Begin(ctx, callOf(call.AllReduce, -1, 4, nil, nil), false)
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
						return c.Issued(k, true)
					}
					return c.Begin(t.Context(), k, true)
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
				assert.Nil(t, c.Begin(t.Context(), callOf(call.AllReduce, -1, 4+c.Rank(), nil, nil), false))
			}
		}, call.Mismatch},
		{"the other closes", func(all []*Comm) {
			assert.Nil(t, all[0].Begin(t.Context(), callOf(call.AllReduce, -1, 4, nil, nil), false))
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
			all[0].Inside(false)
			assert.Zero(t, all[0].rank.Standing.Elsewhere.Foreign.Load())
		})
	}
}
