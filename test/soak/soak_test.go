//go:build linux

package soak

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/race"
)

var (
	small = flag.Float64("small", 50_000, "calls of 8 bytes")
	mixed = flag.Float64("mixed", 3_000, "calls of all kinds and sizes")
	pairs = flag.Float64("pairs", 50_000, "SendRecv of 8 bytes")
	churn = flag.Float64("churn", 2_000, "slices that are made, used and freed")
	limit = flag.Duration("for", 0, "go on for so long at most, whatever the numbers; 0: no limit")
)

// worlds are the ways to run the ranks; each makes its share of the calls.
var worlds = []struct {
	name string
	n    int
	opts []ccltest.Option
}{
	{"goroutines", 2, nil},
	{"shared memory", 2, []ccltest.Option{ccltest.Processes(2)}},
	{"TCP", 2, []ccltest.Option{ccltest.Processes(2), ccltest.Hosts(2)}},
	{"mixed", 4, []ccltest.Option{ccltest.Processes(4), ccltest.Hosts(2)}},
}

// TestR13NothingGrows is the promise of that number.
func TestR13NothingGrows(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.name, func(t *testing.T) {
			opts := append(w.opts, ccltest.Deadline(7*24*time.Hour))
			ccltest.Run(t, w.n, func(t testing.TB, c *ccl.Comm) {
				share := 1 / float64(len(worlds))
				soak(t, c, "small", int(*small*share), smallCall)
				soak(t, c, "mixed", int(*mixed*share), mixedCall)
				soak(t, c, "pairs", int(*pairs*share), pairCall)
				if testing.Short() { // what takes longest
					share /= 4
				}
				soak(t, c, "churn", int(*churn*share), churnCall)
			}, opts...)
		})
	}
}

// warmUp is how many of all calls may still take memory: a tenth, but enough for all sizes.
func warmUp(n int) int { return max(n/10, min(n/2, 2000)) }

// soak makes n calls and compares what the process uses after the first of them and after all.
func soak(t testing.TB, c *ccl.Comm, what string, n int, call func(context.Context, *ccl.Comm, *buffers, int) error) {
	t.Helper()
	b := newBuffers(c)
	var before usage
	began, warm, done := time.Now(), warmUp(n), 0
	for ; done < n; done++ {
		if done == warm {
			before = used(t, c)
		}
		if err := call(t.Context(), c, b, done); err != nil {
			t.Fatalf("%s call %d: %v", what, done, err)
		}
		// All ranks must stop at the same call: rank 0 tells, now and then, how late it is.
		if done%512 == 511 && *limit > 0 {
			over := []uint8{0}
			if c.Rank() == 0 && time.Since(began) > *limit/time.Duration(4*len(worlds)) {
				over[0] = 1
			}
			require.NoError(t, ccl.Broadcast(t.Context(), c, over, 0))
			if over[0] == 1 && done > warm {
				break
			}
		}
	}
	after := used(t, c)
	if c.Rank() == 0 {
		t.Logf("%s: %d calls in %v; resident %d KiB, then %d KiB; files %d, %d; mappings %d, %d; shared %d KiB, %d KiB", what, done,
			time.Since(began).Round(time.Millisecond), before.resident>>10, after.resident>>10, before.files, after.files,
			before.maps, after.maps, before.shared>>10, after.shared>>10)
	}
	spare := 1 << 20
	if race.Enabled { // whose own memory follows what was touched
		spare = 8 << 20
	}
	require.LessOrEqual(t, after.resident, before.resident+spare, "resident memory grows: %d KiB, then %d KiB", before.resident>>10, after.resident>>10)
	require.LessOrEqual(t, after.files, before.files)
	require.LessOrEqual(t, after.maps, before.maps+spareMaps)
	require.LessOrEqual(t, after.shared, before.shared+1<<20, "the memory that ranks share grows")
	require.LessOrEqual(t, after.goroutines, before.goroutines)
}

// usage is what this process takes.
type usage struct{ resident, files, goroutines, maps, shared int }

// spareMaps is how many more mappings a process may have after all calls: those of the runtime come and go.
const spareMaps = 32

func used(t testing.TB, c *ccl.Comm) usage {
	t.Helper()
	ccltest.Barrier(t, c) // ranks of one process look at the same memory
	for range 3 {
		runtime.GC()
	}
	debug.FreeOSMemory()
	u := count(t)
	ccltest.Barrier(t, c)
	return u
}

var counting sync.Mutex

// count reads what this process takes, one rank after another: the files that another reads are no leak.
func count(t testing.TB) usage {
	counting.Lock()
	defer counting.Unlock()
	text, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	require.NoError(t, err)
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return usage{pages * os.Getpagesize(), len(files), runtime.NumGoroutine(), bytes.Count(maps, []byte("\n")), shared(t)}
}

// shared is how much memory the ranks of this host share, of all the jobs of this process.
func shared(t testing.TB) (n int) {
	files, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, f := range files {
		name := "/proc/self/fd/" + f.Name()
		if where, _ := os.Readlink(name); strings.Contains(where, "memfd:goccl") {
			var st syscall.Stat_t
			require.NoError(t, syscall.Stat(name, &st))
			n += int(st.Blocks) * 512
		}
	}
	return n
}

// buffers are what the calls work on, made once.
type buffers struct {
	n, me    int
	src, dst []float32
}

const largest = 1 << 18

func newBuffers(c *ccl.Comm) *buffers {
	return &buffers{c.Size(), c.Rank(), make([]float32, largest), make([]float32, largest)}
}

// value is small enough for exact sums.
func value(rank, call, i int) float32 { return float32((rank*7 + call + i) % 13) }

func smallCall(ctx context.Context, c *ccl.Comm, b *buffers, call int) error {
	src, dst := b.src[:2], b.dst[:2]
	src[0], src[1] = value(b.me, call, 0), value(b.me, call, 1)
	if err := ccl.AllReduce(ctx, c, dst, src, ccl.Sum); err != nil {
		return err
	}
	for i := range dst {
		var want float32
		for r := range b.n {
			want += value(r, call, i)
		}
		if dst[i] != want {
			return fmt.Errorf("element %d is %v, not %v", i, dst[i], want)
		}
	}
	return nil
}

// sizes are the numbers of elements that mixed calls go through.
var sizes = []int{0, 1, 8, 100, 512, 513, 4096, 10_000, 32_768, 65_536, largest}

// sampled calls f for some of n places: the first, the last and every 97th.
func sampled(n int, f func(i int) error) error {
	for i := 0; i < n; i += 97 {
		if err := f(i); err != nil {
			return err
		}
	}
	if n > 0 {
		return f(n - 1)
	}
	return nil
}

func mixedCall(ctx context.Context, c *ccl.Comm, b *buffers, call int) error {
	n := sizes[call/8%len(sizes)] / b.n * b.n
	block := n / b.n
	src, dst := b.src[:n], b.dst[:n]
	for i := range src {
		src[i] = value(b.me, call, i)
	}
	sum := func(i int) (s float32) {
		for r := range b.n {
			s += value(r, call, i)
		}
		return s
	}
	is := func(got []float32, want func(i int) float32) error {
		return sampled(len(got), func(i int) error {
			if w := want(i); got[i] != w {
				return fmt.Errorf("element %d of %d is %v, not %v", i, len(got), got[i], w)
			}
			return nil
		})
	}
	root := call % b.n
	var err error
	switch call % 8 {
	case 0:
		if err = ccl.AllReduce(ctx, c, dst, src, ccl.Sum); err == nil {
			err = is(dst, sum)
		}
	case 1:
		if err = ccl.Broadcast(ctx, c, src, root); err == nil {
			err = is(src, func(i int) float32 { return value(root, call, i) })
		}
	case 2:
		if err = ccl.AllGather(ctx, c, dst, src[:block]); err == nil && n > 0 {
			err = is(dst, func(i int) float32 { return value(i/block, call, i%block) })
		}
	case 3:
		if err = ccl.ReduceScatter(ctx, c, dst[:block], src, ccl.Sum); err == nil {
			err = is(dst[:block], func(i int) float32 { return sum(b.me*block + i) })
		}
	case 4:
		if err = ccl.AllToAll(ctx, c, dst, src); err == nil && n > 0 {
			err = is(dst, func(i int) float32 { return value(i/block, call, b.me*block+i%block) })
		}
	case 5:
		if err = ccl.Reduce(ctx, c, dst, src, ccl.Sum, root); err == nil && b.me == root {
			err = is(dst, sum)
		}
	case 6:
		to, from := (b.me+1)%b.n, (b.me+b.n-1)%b.n
		if err = ccl.SendRecv(ctx, c, dst, from, src, to); err == nil {
			err = is(dst, func(i int) float32 { return value(from, call, i) })
		}
	case 7:
		err = c.On(nil).AllReduce(ccl.BufOf(dst), ccl.BufOf(src), ccl.Sum).Wait(ctx)
		if err == nil {
			err = is(dst, sum)
		}
	}
	return err
}

// pairCall passes 8 bytes around the ranks.
func pairCall(ctx context.Context, c *ccl.Comm, b *buffers, call int) error {
	src, dst := b.src[:2], b.dst[:2]
	src[0], src[1] = value(b.me, call, 0), value(b.me, call, 1)
	from := (b.me + b.n - 1) % b.n
	if err := ccl.SendRecv(ctx, c, dst, from, src, (b.me+1)%b.n); err != nil {
		return err
	}
	if dst[0] != value(from, call, 0) || dst[1] != value(from, call, 1) {
		return fmt.Errorf("%v came from rank %d", dst, from)
	}
	return nil
}

// churnCall makes slices of sizes that come again only after a while, reduces into a part of one, and frees them; and it
// splits a Comm off, and closes it.
func churnCall(ctx context.Context, c *ccl.Comm, b *buffers, call int) error {
	n := 1 + call*7919%largest
	src, err := ccl.MakeSlice[float32](ctx, c, n)
	if err != nil {
		return err
	}
	dst, err := ccl.MakeSlice[float32](ctx, c, n+5)
	if err != nil {
		return err
	}
	sum := float32(0)
	for r := range b.n {
		sum += value(r, call, 0)
	}
	for i := range src {
		if src[i] != 0 || dst[i] != 0 {
			return fmt.Errorf("element %d of a new slice is %v, %v", i, src[i], dst[i])
		}
		src[i] = value(b.me, call, 0)
	}
	on := c
	if call%16 == 0 {
		if on, err = c.Split(ctx, 0, b.me); err != nil {
			return err
		}
	}
	if err := ccl.AllReduce(ctx, on, dst[3:3+n], src, ccl.Sum); err != nil {
		return err
	}
	for i, v := range dst[3 : 3+n] {
		if v != sum {
			return fmt.Errorf("element %d of %d is %v, not %v", i, n, v, sum)
		}
	}
	if on != c {
		if err := on.Close(); err != nil {
			return err
		}
	}
	ccl.FreeSlice(src)
	ccl.FreeSlice(dst)
	return nil
}
