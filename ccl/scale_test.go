package ccl_test

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// scales are numbers of ranks in one process.
var scales = []int{64, 256, 1024}

// atScale skips what would take too long here.
func atScale(t *testing.T, n int) {
	t.Helper()
	if n > 256 && (testing.Short() || raceDetector) {
		t.Skip("-short: a thousand ranks (nor under -race)")
	}
}

// usage is what a process holds.
type usage struct {
	heap, stacks uint64
	sockets      int
	goroutines   int
}

// used counts what is still in use after collections that have nothing more to free: one alone leaves what a
// sync.Pool holds and what was allocated while it ran.
func used() usage {
	var m runtime.MemStats
	for least := uint64(math.MaxUint64); ; least = m.HeapAlloc {
		runtime.GC()
		runtime.ReadMemStats(&m)
		if m.HeapAlloc >= least-least/100 {
			break
		}
	}
	return usage{heap: m.HeapAlloc, stacks: m.StackInuse, sockets: sockets(), goroutines: runtime.NumGoroutine()}
}

// usedOnce is used once the heap is at most so large, or after half a minute: what a neighbor of the control tree has not read yet,
// at most 64 KiB for each, its host keeps until then, and monitors that share two cores with hundreds of ranks are late.
func usedOnce(heap uint64) usage {
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if u := used(); u.heap <= heap || time.Since(began) > 30*time.Second {
			return u
		}
	}
}

// gate lets all ranks of a process wait for each other without a call, and the last
// to come do something meanwhile.
type gate struct {
	mu   sync.Mutex
	n    int
	here int
	open chan struct{}
}

func newGate(n int) *gate { return &gate{n: n, open: make(chan struct{})} }

func (g *gate) meet(f func()) {
	g.mu.Lock()
	open := g.open
	if g.here++; g.here == g.n {
		f()
		g.here, g.open = 0, make(chan struct{})
		close(open)
	}
	g.mu.Unlock()
	<-open
}

// Ranks of one host: what each holds beyond its part of what they share, most of which is the ring of its data, does not
// grow with the number of ranks.
func TestScaleHeap(t *testing.T) {
	const comm = 32 << 10 // a rank's Comm, schedules, and its goroutine
	for _, n := range scales {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			atScale(t, n)
			shared := 19 << 10 // a rank's part
			if n <= 64 {
				shared = 40 << 10
			}
			before := used()
			var joined, busy usage
			g := newGate(n)
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				g.meet(func() { joined = used() })
				x := []float32{1}
				require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
				require.Equal(t, float32(n), x[0])
				require.NoError(t, ccl.Broadcast(t.Context(), c, x, n-1))
				g.meet(func() { busy = used() })
			}, ccltest.Deadline(3*time.Minute))
			perRank := func(u usage) int { return int(u.heap-before.heap) / n }
			t.Logf("%d ranks: heap per rank %d B joined, %d B after calls; stacks %d B; %d goroutines, %d sockets",
				n, perRank(joined), perRank(busy), int(busy.stacks-before.stacks)/n, busy.goroutines, busy.sockets)
			require.Less(t, perRank(busy), shared+comm)
			require.Equal(t, before.sockets, busy.sockets, "one process, one host: no sockets")
		})
	}
}

// Every rank a host of its own: connections are those of the control tree, two to the
// neighbors in a ring, and for trees and doubling as many as the rank count has bits.
func TestScaleConnections(t *testing.T) {
	if sockets() < 0 {
		t.Skip("no /proc/self/fd to count sockets with")
	}
	for _, n := range scales {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			atScale(t, n)
			if n > 64 && testing.Short() {
				t.Skip("-short: a rank that is connected with all others has too many sockets with 64, too")
			}
			// Both ends of a connection are in this process: a rank has one of its own.
			const (
				listener = 1
				control  = 6 // a tree of n hosts has n-1 connections, a ring of reach two 2n; each has two ends
				ring     = 2
				spare    = 1 // what is not closed yet

				// What a rank holds of each other one: where it stands. It is told once a call has lasted for 500 ms,
				// which calls of a thousand ranks on few cores may.
				picture = 256
				keys    = 3 << 10 // of an end of a control connection, with the record that has come: see auth.Stream
			)
			small := 2 * bits.Len(uint(n-1)) // doubling: the same peers both ways, or dissemination: others
			enough := fileLimit() > n*(listener+control+ring+small+spare)+1000
			if fileLimit() < n*(listener+control+ring+spare)+1000 {
				t.Skipf("the limit of %d files (ulimit -n) does not do for %d ranks", fileLimit(), n)
			}
			if !enough {
				t.Logf("the limit of %d files (ulimit -n) does for rings of %d ranks only", fileLimit(), n)
			}
			mostRinged := 128<<10 + control*keys + n*picture
			mostCalled := 512<<10 + control*keys + n*picture
			before := used()
			var joined, ringed, called usage
			g := newGate(n)
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				g.meet(func() { joined = used() })
				require.NoError(t, turn(ctx, c))
				g.meet(func() { ringed = usedOnce(before.heap + uint64(n*(mostRinged-1))) })
				if !enough {
					return
				}
				x := []float32{1}
				require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
				require.Equal(t, float32(n), x[0])
				require.NoError(t, ccl.Broadcast(ctx, c, x, 0))
				require.NoError(t, ccl.Reduce(ctx, c, x, x, ccl.Sum, 0))
				require.NoError(t, ccl.Barrier(ctx, c))
				g.meet(func() { called = usedOnce(before.heap + uint64(n*(mostCalled-1))) })
			}, ccltest.Hosts(n), ccltest.Deadline(3*time.Minute))
			perRank := func(u usage) float64 { return float64(u.sockets-before.sockets) / float64(n) }
			heap := func(u usage) int { return int(u.heap-before.heap) / n }
			t.Logf("%d ranks: sockets per rank %.2f joined, %.2f with a ring; heap per rank %d B, %d B; %d goroutines",
				n, perRank(joined), perRank(ringed), heap(joined), heap(ringed), ringed.goroutines)
			require.LessOrEqual(t, perRank(joined), float64(listener+control+spare))
			require.LessOrEqual(t, perRank(ringed), float64(listener+control+ring+spare))
			require.Less(t, heap(ringed), mostRinged)
			if enough {
				t.Logf("%d ranks: sockets per rank %.2f with small calls; heap per rank %d B", n, perRank(called), heap(called))
				require.LessOrEqual(t, perRank(called), float64(listener+control+ring+small+spare))
				require.Less(t, heap(called), mostCalled)
			}
		})
	}
}

// turn is one exchange with both neighbors, as rings have it.
func turn(ctx context.Context, c *ccl.Comm) error {
	n, r := c.Size(), c.Rank()
	x, y := []int{r}, []int{-1}
	if err := ccl.SendRecv(ctx, c, y, (r+n-1)%n, x, (r+1)%n); err != nil {
		return err
	}
	if y[0] != (r+n-1)%n {
		return fmt.Errorf("rank %d got %d", r, y[0])
	}
	return nil
}

// All calls work on many ranks, whose shares of staging memory are small.
func TestScaleCalls(t *testing.T) {
	for _, n := range scales {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			atScale(t, n)
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				number, counts := uint64(0), []int{1, 5}
				if n > 64 && testing.Short() {
					counts = counts[1:]
				}
				for _, kind := range kinds {
					if kind == ccl.KindAllToAllV && n > 256 {
						continue // a million pairs, each with a pipe of its own
					}
					for _, count := range counts {
						number++
						s := shape{kind: kind, op: ccl.Sum, root: n / 3, count: count, number: number}
						s.uneven(n)
						require.NoError(t, elements[6].play(t.Context(), c, s))
					}
				}
			}, ccltest.Deadline(3*time.Minute))
		})
	}
}

// sockets counts those of this process; -1 where that cannot be told.
func sockets() int {
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	n := 0
	for _, f := range files {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && len(to) > 7 && to[:7] == "socket:" {
			n++
		}
	}
	return n
}
