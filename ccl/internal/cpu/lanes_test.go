package cpu

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/join"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
)

const largeCount = 450_000 // of int32: more than three shares of 512 KiB, and no multiple of anything

func largeVector(rank int) []int32 {
	v := make([]int32, largeCount)
	for i := range v {
		v[i] = int32(rank*1_000_003 + i)
	}
	return v
}

// lanesTo are the links over which c spreads the large messages of its collectives to a peer.
func lanesTo(t *testing.T, c *Comm, peer int) reflect.Value {
	t.Helper()
	l, f := c.links.Ends.Link(t.Context(), peer, 0)
	require.Nil(t, f)
	return reflect.ValueOf(l).Elem().FieldByName("lanes")
}

// Messages that are spread over several connections bring what others do: whatever moves them or reduces them, where both ends
// spread theirs over another number, protected and with checksums.
func TestLanes(t *testing.T) {
	swap, err := algo.ParseOverride("allreduce=doubling")
	require.NoError(t, err)
	for _, tc := range []struct {
		name  string
		hosts []string
		wire  auth.Wire
		opt   plane.Options
	}{
		{"plain", []string{"a", "b"}, auth.Plain, plane.Options{}},
		{"encrypted", []string{"a", "b"}, auth.Encrypt, plane.Options{}},
		{"checked", []string{"a", "b"}, auth.Plain, plane.Options{Agreed: group.Agreed{Strict: true}}},
		{"authenticated, and what is sent is reduced into", []string{"a", "b"}, auth.Auth, plane.Options{Agreed: group.Agreed{Table: swap}}},
		{"what is sent is reduced into", []string{"a", "b"}, auth.Plain, plane.Options{Agreed: group.Agreed{Table: swap}}},
		{"three hosts", []string{"a", "b", "c"}, auth.Plain, plane.Options{Agreed: group.Agreed{Table: swap}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && tc.wire != auth.Plain {
				t.Skip("-short: an emulator takes a minute to protect so much")
			}
			all := commsOf(t, tc.hosts, join.Terms{Settings: "test", Wire: tc.wire, Secret: auth.Given(auth.NewSecret())}, tc.opt)
			n := len(all)
			sum := make([]int32, largeCount)
			for r := range n {
				for i, x := range largeVector(r) {
					sum[i] += x
				}
			}
			// Each end spreads what it sends over another number.
			from := func(root int) func(c *Comm) error {
				return func(c *Comm) error {
					return run(t, c, callOf(call.Broadcast, root, largeCount, largeVector(root), nil))
				}
			}
			t.Setenv("GOCCL_SOCKETS", "3")
			each(t, all, from(0))
			t.Setenv("GOCCL_SOCKETS", "2")
			each(t, all, from(1))
			for round := range 3 {
				each(t, all, func(c *Comm) error {
					me := c.Rank()
					v := largeVector(me)
					if err := run(t, c, callOf(call.AllReduce, -1, largeCount, v, v)); err != nil {
						return err
					}
					assert.True(t, slices.Equal(sum, v), "the sum, rank %d, round %d", me, round)
					got := largeVector(me)
					if err := run(t, c, callOf(call.Broadcast, 1, largeCount, got, nil)); err != nil {
						return err
					}
					assert.True(t, slices.Equal(largeVector(1), got), "rank 1's vector, rank %d, round %d", me, round)
					k := callOf(call.SendRecv, (me+n-1)%n, largeCount, got, largeVector(me))
					k.To = (me + 1) % n
					if err := run(t, c, k); err != nil {
						return err
					}
					assert.True(t, slices.Equal(largeVector((me+n-1)%n), got), "the neighbor's vector, rank %d, round %d", me, round)
					return nil
				})
			}
			assert.Equal(t, 3, lanesTo(t, all[0], 1).Len())
			assert.Equal(t, 2, lanesTo(t, all[1], 0).Len())
		})
	}
}

// Whichever of the connections of large messages is cut, a call fails on both sides, as if there were one.
func TestCutLane(t *testing.T) {
	t.Setenv("GOCCL_SOCKETS", "3")
	for lane := range 3 {
		for by := range 2 {
			t.Run(fmt.Sprintf("lane %d by rank %d", lane, by), func(t *testing.T) {
				all := comms(t, []string{"a", "b"})
				each(t, all, func(c *Comm) error {
					return run(t, c, callOf(call.Broadcast, 0, largeCount, largeVector(c.Rank()), nil))
				})
				each(t, all, func(c *Comm) error {
					return run(t, c, callOf(call.Broadcast, 1, largeCount, largeVector(c.Rank()), nil))
				})
				lanes := lanesTo(t, all[by], 1-by)
				require.Equal(t, 3, lanes.Len())
				(*tcp.Conn)(lanes.Index(lane).Elem().FieldByName("conn").UnsafePointer()).Abort()
				var wg sync.WaitGroup
				for r, c := range all {
					wg.Go(func() {
						f := c.one(t.Context(), callOf(call.Broadcast, 0, largeCount, largeVector(r), nil))
						if f == nil { // all of it was in the kernel's hands before the cut was seen
							f = c.one(t.Context(), callOf(call.AllReduce, -1, largeCount, largeVector(r), largeVector(r)))
						}
						if assert.NotNil(t, f, "rank %d", r) {
							assert.Equal(t, call.RankLost, f.Code, "rank %d: %v", r, f.Err)
						}
					})
				}
				wg.Wait()
			})
		}
	}
}
