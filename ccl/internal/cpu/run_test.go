package cpu

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/internal/op"
)

func TestDense(t *testing.T) {
	assert.Equal(t, []int{0, 1, 0, 2, 1}, group.Dense([]int{7, 3, 7, 0, 3}))
	assert.Empty(t, group.Dense[int](nil))
}

// Every Comm of a job has a number of its own, and none that of the world.
func TestChildID(t *testing.T) {
	seen := map[uint64]bool{group.WorldID: true}
	parents := []uint64{group.WorldID}
	for range 2 {
		var next []uint64
		for _, p := range parents {
			for split := range uint64(5) {
				for color := range 5 {
					id := group.ChildID(p, split+1, color)
					assert.False(t, seen[id])
					assert.Equal(t, id, group.ChildID(p, split+1, color))
					seen[id] = true
					next = append(next, id)
				}
			}
		}
		parents = next
	}
}

// Two ranks disagree about collective 7, and fail the Comm before this one has made it. Whom it names depends on
// what it makes then, or is about to.
func TestSide(t *testing.T) {
	odd, most := call.Record{Place: 7, Hash: 5, Kind: call.Broadcast}, call.Record{Place: 7, Hash: 9, Kind: call.AllReduce}
	for _, tc := range []struct {
		name string
		seq  uint64
		hash uint32
		want int // the rank named
	}{
		{"neither's", 7, 3, 1},
		{"that of the other", 7, 9, 1},
		{"that of the one named", 7, 5, 2},
		{"another collective", 6, 5, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &call.Fault{Code: call.Mismatch, Peer: 1, Theirs: &odd, OtherPeer: 2, Other: &most}
			var c Comm
			g := c.rank.Fate.Side(f, tc.seq, tc.hash)
			assert.Equal(t, tc.want, g.Peer)
			assert.Equal(t, 1, f.Peer)
			if tc.want == 2 {
				assert.Equal(t, &most, g.Theirs)
				assert.Same(t, g, c.rank.Fate.Failure())
			}
		})
	}
}

// Rank 2 has its part of a Split when rank 0's fails. It hears in the new Comm which rank is at fault, or which has left it
// there, and why.
func TestSplitFailedOnOne(t *testing.T) {
	ended := errors.New("its process ended")
	for _, tc := range []struct {
		name   string
		colors []int
		fail   func(all []*Comm, stop []context.CancelFunc)
		code   call.Code
		peer   int // of the new Comm
		text   string
	}{
		{"a rank of another color is lost", []int{0, 1, 0}, func(all []*Comm, _ []context.CancelFunc) { all[0].rank.Site.Lost(1, ended) },
			call.Aborted, 0, "Split failed: world rank 1: its process ended"},
		{"a rank of this color is lost, as far as rank 0 knows", []int{0, 0, 0}, func(all []*Comm, _ []context.CancelFunc) {
			all[0].rank.FailHere(&call.Fault{Code: call.RankLost, Peer: 1, Err: ended})
		}, call.RankLost, 1, "its process ended"},
		{"rank 0 gives up", []int{0, 1, 0}, func(_ []*Comm, stop []context.CancelFunc) { stop[0]() }, call.Canceled, 0, "context canceled"},
		{"a rank of another color gives up", []int{0, 1, 0}, func(_ []*Comm, stop []context.CancelFunc) { stop[1]() },
			call.Aborted, 0, "Split failed: world rank 1: context canceled"},
		{"a rank of another color closes", []int{0, 1, 0}, func(all []*Comm, _ []context.CancelFunc) { all[0].Fail(call.NewFault(call.Closed, 1, "")) },
			call.Aborted, 0, "Split failed: world rank 1: it has closed the old Comm"},
		{"a rank of this color has made another call", []int{0, 0, 0}, func(all []*Comm, _ []context.CancelFunc) {
			all[0].rank.FailHere(call.NewFault(call.Mismatch, 1, ""))
		}, call.Aborted, 0, "Split failed: world rank 1: it has made another call"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := comms(t, []string{"a", "a", "a"})
			ctxs, stop := make([]context.Context, 3), make([]context.CancelFunc, 3)
			for r := range all {
				ctxs[r], stop[r] = context.WithCancel(t.Context())
				defer stop[r]()
			}
			gathers, left := 0, make(chan struct{})
			all[2].disturb = func(c *Comm, k *call.Call) *call.Fault {
				if gathers++; c != all[2] || gathers != 3 {
					return nil
				}
				for r := range 2 { // which wait for this rank alone, once they have posted
					for c.rank.Share.Local.Posted(r, c.rank.Order.Round) != c.rank.Order.Round+1 {
						time.Sleep(time.Millisecond)
					}
				}
				tc.fail(all, stop)
				<-left
				return nil
			}
			var child *Comm
			each(t, all, func(c *Comm) error {
				k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.Split, Root: -1}}}
				sub, f := Split(ctxs[c.Rank()], c, k, tc.colors[c.Rank()], 0, plane.Options{})
				if sub != nil {
					t.Cleanup(func() { sub.Close() })
				}
				switch {
				case c.Rank() == 0:
					close(left)
					if f == nil {
						return errors.New("Split has succeeded")
					}
				case c.Rank() == 2 && f != nil:
					return f
				case c.Rank() == 2:
					child = sub
				}
				return nil
			})
			require.NotNil(t, child)
			select {
			case <-child.rank.Fate.Context().Done():
			case <-time.After(10 * time.Second):
				require.Fail(t, "the new Comm hears nothing")
			}
			f := child.Failure()
			assert.Equal(t, tc.code, f.Code)
			assert.Equal(t, tc.peer, f.Peer)
			assert.EqualError(t, f.Err, tc.text)
			assert.Equal(t, tc.code == call.Aborted, NeverWhole(f))
		})
	}
}
