package cpu

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/internal/op"
)

// again is another Comm of the two ranks of twoOfAHost.
func again(t *testing.T, of [2]*Comm) (c [2]*Comm) {
	t.Helper()
	s := of[0].rank.Site
	of[0].splits++ // no two Comms of a job have the same number
	off, err := s.Here.Host.Alloc(region.Bytes(2))
	require.NoError(t, err)
	for r := range c {
		s.Job.Hold()
		c[r], err = newComm(s, group.ChildID(group.WorldID, of[0].splits, 0), group.MembersOf([]int{0, 1}), s.Job.World.Topo, r, off, plane.Options{})
		require.NoError(t, err)
	}
	return c
}

// A Comm that is closed gives back what its calls have made: staging memory, and the rings of what each rank has sent alone.
func TestClosedCommGivesBack(t *testing.T) {
	world := twoOfAHost(t)
	h := world[0].rank.Site.Here.Host
	var space, memory int
	for i := range 20 {
		if i == 5 { // what is taken once is there
			space, memory = unusedBy(h), takenBy(t, h)
		}
		c := again(t, world)
		before := takenBy(t, h)
		var both sync.WaitGroup
		for _, c := range c {
			both.Go(func() {
				src, dst := make([]byte, 64<<10), make([]byte, 64<<10)
				for root := range int32(2) {
					assert.NoError(t, run(t, c, &call.Call{Head: op.Head{Record: call.Record{Kind: call.Broadcast, Root: root, Count: 4 << 10}}, Dst: dst[:4<<10], Src: dst[:4<<10], Elem: 1}))
				}
				assert.NoError(t, run(t, c, &call.Call{Head: op.Head{Record: call.Record{Kind: call.AllGather, Root: -1, Count: 16 << 10}}, Dst: dst[:32<<10], Src: src[:16<<10], Elem: 1}))
			})
		}
		both.Wait()
		l := watch.LayoutOf(h)
		require.GreaterOrEqual(t, takenBy(t, h)-before, 2*l.SentRing(2))
		for _, c := range c {
			c.Close()
		}
	}
	require.Equal(t, space, unusedBy(h))
	require.Equal(t, memory, takenBy(t, h))
}

// What a Split that failed has made is given back, on whichever rank it failed and in whatever order the Comms are closed.
func TestFailedSplitLeavesNothing(t *testing.T) {
	world := twoOfAHost(t)
	world[0].rank.Site.Job.StartMonitor() // it frees what a rank that has closed a Comm has waited with
	h := world[0].rank.Site.Here.Host
	for _, tc := range []struct {
		name   string
		gather int // of Split, in which rank 1 comes only when rank 0 has given up
		late   bool
		colors [2]int
		first  bool // the new Comm is closed first
	}{
		{"nobody has it, nor knows of it", 2, false, [2]int{0, 0}, false},
		{"nobody has it", 3, false, [2]int{0, 0}, false},
		{"two Comms, nobody has them", 3, false, [2]int{0, 1}, false},
		{"rank 1 has it, and closes it last", 3, true, [2]int{0, 0}, false},
		{"rank 1 has it, and closes it first", 3, true, [2]int{0, 0}, true},
		{"two Comms, rank 1 has its own", 3, true, [2]int{0, 1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var space, memory int
			times := 100
			if testing.Short() {
				times = 30
			}
			for i := range times {
				if i == 10 { // what is taken once is there
					space, memory = unusedBy(h), takenBy(t, h)
				}
				c := again(t, world)
				ctx, stop := context.WithCancel(t.Context())
				gathers, left := 0, make(chan struct{})
				c[1].disturb = func(of *Comm, _ *call.Call) *call.Fault {
					if gathers++; of != c[1] || gathers != tc.gather {
						return nil
					}
					for tc.late && of.rank.Share.Local.Posted(0, of.rank.Order.Round) != of.rank.Order.Round+1 {
						of.rank.Site.Scan()
					}
					stop()
					<-left
					if !tc.late {
						return call.NewFault(call.Aborted, 1, "on purpose")
					}
					return nil
				}
				var child [2]*Comm
				each(t, c[:], func(c *Comm) error {
					var f *call.Fault
					in := ctx
					if c.Rank() == 1 {
						in = t.Context()
					}
					child[c.Rank()], f = Split(in, c, &call.Call{Head: op.Head{Record: call.Record{Kind: call.Split, Root: -1}}}, tc.colors[c.Rank()], 0, plane.Options{})
					if c.Rank() == 0 {
						close(left)
					}
					if (f == nil) != (tc.late && c.Rank() == 1) {
						return errors.New("Split has ended otherwise")
					}
					return nil
				})
				if child[1] != nil && tc.first {
					child[1].Close()
				}
				each(t, c[:], func(c *Comm) error { c.Close(); return nil })
				if child[1] != nil && !tc.first {
					child[1].Close()
				}
			}
			require.Eventually(t, func() bool { return unusedBy(h) >= space && takenBy(t, h) <= memory }, 20*time.Second, 5*time.Millisecond,
				"of %d and %d bytes: what the last Comm had goes back at a beat", space, memory)
		})
	}
}
