package ccl_test

import (
	"bytes"
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// Host collectives allocate nothing once the Comm has done one like it: not the
// calls, nor what runs beside them.
func TestAllocs(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	for _, n := range []int{2, 3} {
		inWorlds(t, n, allocs, ccltest.Deadline(4*time.Minute)) // a second on a machine of its own
	}
}

// The monitor, which keeps the clock and tells other hosts that this one is alive,
// allocates nothing either, or Go's collector would run in a job that does nothing.
func TestAllocsIdle(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates")
	}
	inWorlds(t, 3, func(t testing.TB, c *ccl.Comm) {
		first := speaks(t, c)
		ctx := context.Background()
		// A rank that waits in a call tells the others so. So nobody is in one until all have measured; who has
		// leaves a file, since any call would be one.
		dir, measuring := make([]uint8, 1024), []int{0}
		if c.Rank() == 0 {
			require.Less(t, copy(dir, t.TempDir()), len(dir))
		}
		if first {
			measuring[0] = 1
		}
		require.NoError(t, ccl.AllReduce(ctx, c, measuring, measuring, ccl.Sum))
		require.NoError(t, ccl.Broadcast(ctx, c, dir, 0))
		at := string(bytes.TrimRight(dir, "\x00"))
		v, _ := haveMeasured.LoadOrStore(at, make(chan struct{}))
		all := v.(chan struct{})
		require.NoError(t, ccl.Barrier(ctx, c))
		if !first {
			<-all
		} else {
			time.Sleep(700 * time.Millisecond)  // what the ranks have told each other has arrived by then
			const beat = 300 * time.Millisecond // and 60 ticks of the clock
			assert.Zero(t, testing.AllocsPerRun(1, func() { time.Sleep(beat) }), "%v", c)
			assert.NoError(t, os.WriteFile(filepath.Join(at, strconv.Itoa(c.Rank())), nil, 0o600))
			assert.Eventually(t, func() bool { files, _ := os.ReadDir(at); return len(files) == measuring[0] }, 20*time.Second, 5*time.Millisecond)
			close(all)
		}
		require.NoError(t, ccl.Barrier(ctx, c))
	})
}

// haveMeasured has, for each world of TestAllocsIdle, a channel that is closed when all its processes have measured.
var haveMeasured sync.Map

// speaks reports whether this rank is the first of its process.
func speaks(t testing.TB, c *ccl.Comm) bool {
	pids := make([]int, c.Size())
	require.NoError(t, ccl.AllGather(t.Context(), c, pids, []int{os.Getpid()}))
	return slices.Index(pids, os.Getpid()) == c.Rank()
}

// allocs requires that no call allocates. AllocsPerRun counts for the whole process:
// so one rank of each counts while all make the same calls.
func allocs(t testing.TB, c *ccl.Comm) {
	const runs = 20
	first := speaks(t, c)
	ctx := context.Background()
	ended, end := context.WithCancel(ctx) // a queued call waits for this one with a select
	defer end()
	n, rank := c.Size(), c.Rank()
	got, most := make([]float64, 2), make([]float64, 2) // allocations of a call and the slowest, on this rank and of all
	sizes := []int{1, 100, 5_000, 70_000}               // elements of a block
	if testing.Short() {                                // two of them with 2 ranks, and the others with 3
		sizes = []int{sizes[n%2], sizes[2+n%2]}
	}
	for _, count := range sizes {
		src, dst := make([]float32, count), make([]float32, count)
		all, all2 := make([]float32, n*count), make([]float32, n*count)
		half, byte8 := make([]ccl.BFloat16, count), make([]ccl.Float8E4M3, count)
		counts := make([]int, n)
		for r := range counts {
			counts[r] = count
		}
		root, next, prev := n-1, (rank+1)%n, (rank+n-1)%n
		q, nothing := c.On(nil), func() error { return nil }
		both := func(g ccl.Queue) error {
			g.Send(ccl.BufOf(src), next)
			g.Recv(ccl.BufOf(dst), prev)
			g.AllReduce(ccl.BufOf(all), ccl.InPlace(), ccl.Max)
			return nil
		}
		sums := func(g ccl.Queue) error { // which are fused, if they are small
			g.AllReduce(ccl.BufOf(src), ccl.InPlace(), ccl.Max)
			g.AllReduce(ccl.BufOf(dst), ccl.InPlace(), ccl.Max)
			return nil
		}
		for _, tc := range []struct {
			name string
			f    func() error
		}{
			{"AllReduce", func() error { return ccl.AllReduce(ctx, c, dst, src, ccl.Sum) }},
			{"AllReduce in place", func() error { return ccl.AllReduce(ctx, c, dst, dst, ccl.Max) }},
			{"AllReduce of halves", func() error { return ccl.AllReduce(ctx, c, half, half, ccl.Avg) }},
			{"AllReduce of 8-bit floats", func() error { return ccl.AllReduce(ctx, c, byte8, byte8, ccl.Sum) }},
			{"ReduceScatter of halves", func() error {
				return ccl.ReduceScatter(ctx, c, half[rank*(count/n):][:count/n], half[:count/n*n], ccl.Sum)
			}},
			{"AllReduce avg", func() error { return ccl.AllReduce(ctx, c, dst, src, ccl.Avg) }},
			{"Reduce", func() error { return ccl.Reduce(ctx, c, dst, src, ccl.Sum, root) }},
			{"ReduceScatter", func() error { return ccl.ReduceScatter(ctx, c, dst, all, ccl.Sum) }},
			{"ReduceScatterV", func() error { return ccl.ReduceScatterV(ctx, c, dst, all, counts, ccl.Sum) }},
			{"Broadcast", func() error { return ccl.Broadcast(ctx, c, dst, root) }},
			{"AllGather", func() error { return ccl.AllGather(ctx, c, all, src) }},
			{"AllGatherV", func() error { return ccl.AllGatherV(ctx, c, all, counts, src) }},
			{"Gather", func() error { return ccl.Gather(ctx, c, all, src, root) }},
			{"GatherV", func() error { return ccl.GatherV(ctx, c, all, counts, src, root) }},
			{"Scatter", func() error { return ccl.Scatter(ctx, c, dst, all, root) }},
			{"ScatterV", func() error { return ccl.ScatterV(ctx, c, dst, all, counts, root) }},
			{"AllToAll", func() error { return ccl.AllToAll(ctx, c, all2, all) }},
			{"AllToAll in place", func() error { return ccl.AllToAll(ctx, c, all, all) }},
			{"AllToAllV", func() error { return ccl.AllToAllV(ctx, c, all2, counts, all, counts) }},
			{"SendRecv", func() error { return ccl.SendRecv(ctx, c, dst, prev, src, next) }},
			{"Barrier", func() error { return ccl.Barrier(ctx, c) }},
			{"queued AllReduce", func() error { return q.AllReduce(ccl.BufOf(dst), ccl.InPlace(), ccl.Max).Wait(ended) }},
			{"queued AllGatherV", func() error { return q.AllGatherV(ccl.BufOf(all), counts, ccl.BufOf(src)).Wait(ended) }},
			{"Do", func() error { return q.Do(nothing).Wait(ended) }},
			{"Group", func() error { return q.Group(both).Wait(ended) }},
			{"Group of two sums", func() error { return q.Group(sums).Wait(ended) }},
			{"Group on Now", func() error { return c.On(ccl.Now).Group(both).Wait(ended) }},
		} {
			var err error
			var slowest time.Duration
			f := func() {
				began := time.Now()
				if e := tc.f(); e != nil && err == nil {
					err = e
				}
				slowest = max(slowest, time.Since(began))
			}
			for range 8 { // as often as there are slots of memory to be made
				f()
			}
			require.NoError(t, ccl.Barrier(ctx, c))
			least := math.Inf(1) // of the measurements that count
			for try, counted := 0, 0; ; try++ {
				slowest, got[0] = 0, 0
				if first {
					got[0] = testing.AllocsPerRun(runs, f)
				} else {
					for range 1 + runs { // as AllocsPerRun does
						f()
					}
				}
				got[1] = float64(slowest)
				require.NoError(t, ccl.AllReduce(ctx, c, most, got, ccl.Max)) // and nobody does anything else meanwhile
				// After 500 ms in a call ranks tell each other where they stand, which is kept in memory: where other
				// programs make a call so slow, its measurement does not count.
				if most[1] < float64(400*time.Millisecond) {
					least = min(least, most[0])
					counted++
				}
				// The least of three: what sets up a connection may still be at it.
				if least == 0 || counted == 3 || try == 20 {
					break
				}
			}
			require.NoError(t, err)
			if math.IsInf(least, 1) {
				t.Logf("%s of %d on %v: not measured, since each of 20 times a call took longer than 400 ms", tc.name, count, c)
				continue
			}
			assert.Zero(t, least, "%s of %d on %v", tc.name, count, c)
		}
	}
}
