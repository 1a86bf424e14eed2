package rounds

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	this "github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// ranksOf are n ranks of this process, each of which is to get at the memory of the others in the given way.
func ranksOf(t testing.TB, n int, w way) []*Team { return ranksOn(t, plane.PrivateHost(), n, w) }

// ranksOn are such ranks of that host.
func ranksOn(t testing.TB, host *shm.Host, n int, w way) []*Team {
	t.Helper()
	if w == byRead && runtime.GOOS != "linux" {
		t.Skip("memory is read on Linux alone")
	}
	j := plane.EnterJob(t.Name(), 0)
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host = group.Topology(make([]int, n), 1), host
	off, err := s.Here.Host.Alloc(region.Bytes(n))
	require.NoError(t, err)
	mem, err := s.Here.Host.View(off, region.Bytes(n))
	require.NoError(t, err)
	all := make([]*Team, n)
	for r := range all {
		c := new(Team)
		all[r] = c
		m, at := new(plane.Member), new(reach.Reach)
		m.Init(s, group.WorldID, group.Members{Stride: 1}, s.Job.World.Topo, r, region.New(off, mem, n), plane.Options{})
		m.Share.Local.Whole = tuning.Inline(n)
		at.Init(m)
		c.Init(m, at, new(call.Workspace))
		m.Enlist()
		if w == byDirect {
			continue
		}
		// What acquaint finds out about ranks of other processes: this one, which can read itself.
		c.mem.Known.Asked, c.mem.Known.Reads = true, w == byRead
		c.offers.posted, c.mem.Pids, c.mem.Scratch = make([]offer, n), make([]int32, n), make([]byte, 2*tuning.ReadPiece)
		for other := range n {
			if other != r {
				c.mem.Pids[other] = int32(reach.OwnPID)
			}
		}
	}
	t.Cleanup(func() {
		for _, c := range all {
			j.Remove(c.rank)
		}
		j.Leave()
	})
	return all
}

// atOnce runs f as each rank, and waits for all of them.
func atOnce(t testing.TB, all []*Team, f func(c *Team) *call.Fault) {
	t.Helper()
	faults := make([]*call.Fault, len(all))
	var wg sync.WaitGroup
	for r, c := range all {
		wg.Go(func() { faults[r] = f(c) })
	}
	wg.Wait()
	for r, f := range faults {
		require.Nil(t, f, "rank %d: %v", r, f)
	}
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

// value is element i of what rank r has for rank to; small enough that no sum of a test overflows.
func value(r, to, i int) int32 { return int32(r*1_000_000 + to*10_000 + i%9973 + 1) }

// vector has n elements of rank r for rank to.
func vector(r, to, n int) []int32 {
	v := make([]int32, n)
	for i := range v {
		v[i] = value(r, to, i)
	}
	return v
}

// sumOf is what the vectors of n ranks for rank to are, added up.
func sumOf(n, to, count int) []int32 {
	v := make([]int32, count)
	for r := range n {
		for i := range v {
			v[i] += value(r, to, i)
		}
	}
	return v
}

// same fails t where got is not want. Ranks are goroutines, which must not end there: the others would wait for them.
func same(t testing.TB, want, got []int32, format string, args ...any) {
	t.Helper()
	if slices.Equal(want, got) {
		return
	}
	where := fmt.Sprintf(format, args...)
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Errorf("%s: element %d of %d is %d, not %d", where, i, len(want), got[i], want[i])
			return
		}
	}
	t.Errorf("%s: %d elements, not %d", where, len(got), len(want))
}

// bytesOf is the memory of v.
func bytesOf(v []int32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// callOf is a call on elements of 4 bytes, with the sum.
func callOf(kind call.Kind, root, count int, dst, src []int32) *call.Call {
	return &call.Call{Head: op.Head{Record: call.Record{Kind: kind, Root: int32(root), Count: uint64(count)}}, Dst: bytesOf(dst), Src: bytesOf(src), Elem: 4, Fold: reduce.For(op.Int32, op.Sum), Stream: reduce.ForStream(op.Int32, op.Sum), Both: reduce.ForBoth(op.Int32, op.Sum)}
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
