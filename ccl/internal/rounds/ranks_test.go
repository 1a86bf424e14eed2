package rounds

import (
	"context"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	this "github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/ranktest"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

var (
	atOnce  = ranktest.AtOnce[*Team]
	value   = ranktest.Value
	vector  = ranktest.Vector
	sumOf   = ranktest.Sum
	callOf  = ranktest.Call
	same    = ranktest.Same
	bytesOf = ranktest.Bytes
)

// ranksOf are n ranks of this process, each of which is to get at the memory of the others in the given way.
func ranksOf(t testing.TB, n int, w way) []*Team { return ranksOn(t, plane.PrivateHost(), n, w) }

// ranksOn are such ranks of that host.
func ranksOn(t testing.TB, host *shm.Host, n int, w way) []*Team {
	t.Helper()
	if w == byRead && runtime.GOOS != "linux" {
		t.Skip("memory is read on Linux alone")
	}
	return ranktest.Of(t, n, host, plane.Options{}, func(m *plane.Member) *Team {
		c, at := new(Team), new(reach.Reach)
		m.Share.Local.Whole = tuning.Inline(n)
		at.Init(m)
		c.Init(m, at, new(call.Workspace))
		if w == byDirect {
			return c
		}
		// What acquaint finds out about ranks of other processes: this one, which can read itself.
		c.mem.Known.Asked, c.mem.Known.Reads = true, w == byRead
		c.offers.posted, c.mem.Pids, c.mem.Scratch = make([]offer, n), make([]int32, n), make([]byte, 2*tuning.ReadPiece)
		for other := range n {
			if other != m.Group.Rank() {
				c.mem.Pids[other] = int32(reach.OwnPID)
			}
		}
		return c
	})
}

// enter readies k, as Comm.Run does.
func enter(c *Team, k *call.Call) {
	k.Seal()
	if k.DC != nil && k.Kind != call.AllToAllV {
		k.Offsets = call.OffsetsOf(nil, k.DC, k.Elem)
	}
	c.rank.Current.Begin(k, c.rank.Site.Job.Clock(), true)
	c.rank.Order.Enter(k)
}

// run makes k, as Comm.Run does.
func run(t testing.TB, c *Team, k *call.Call) *call.Fault { return runIn(t.Context(), c, k) }

func runIn(ctx context.Context, c *Team, k *call.Call) *call.Fault {
	enter(c, k)
	f := c.RunLocal(ctx, k)
	if c.mem.Untidy || f != nil {
		c.mem.Tidy(f)
	}
	c.rank.EndCall()
	return f
}

// sizes are numbers of elements on both sides of where a call among n ranks goes another way: beside the flag, in the slot,
// in pieces of a stream, in one chunk, in several.
func sizes(n int) []int {
	inline := tuning.Inline(n) / 4
	list := []int{0, 1, inline, inline + 1, tuning.StageChunk(n)/4 + 1, tuning.StageChunk(n)/2 + 77}
	if n == 2 {
		list = append(list, tuning.StreamPiece/4+1, this.CPU.StreamTo/4+1)
	} else {
		list = append(list, tuning.SentTo(n)/4+1, tuning.ReduceAtRootTo(n)/4)
	}
	return list
}

// everyWay calls f for some numbers of ranks, each way to get at memory, and some sizes. count is of elements.
func everyWay(t *testing.T, f func(t *testing.T, all []*Team, count int)) {
	for _, n := range []int{2, 3, 5} {
		for _, by := range []struct {
			name string
			way
			ring int // where it is not 0, ranks also outnumber their cores
		}{{"staged", byStage, 0}, {"in rings", byStage, 2 << 20}, {"read", byRead, 0}, {"in place", byDirect, 0}} {
			t.Run(fmt.Sprintf("%d ranks, %s", n, by.name), func(t *testing.T) {
				ringOf(t, by.ring)
				swapFrom(t, by.ring > 0)
				all := ranksOf(t, n, by.way)
				for _, c := range all {
					c.local.Crowded = by.ring > 0
				}
				for _, count := range sizes(n) {
					f(t, all, count)
				}
				if all[0].mem.Known.Asked { // a Reduce of more than two ranks does not
					require.Equal(t, by.way == byDirect, all[0].mem.Known.All)
				}
				if by.way == byStage && by.ring == 0 {
					require.NotNil(t, all[0].staging.lines)
				}
			})
		}
	}
}

// ended is a context that has ended.
func ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
