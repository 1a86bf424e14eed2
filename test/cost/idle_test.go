//go:build linux

package cost

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/program"
)

func init() {
	idleFor = idle
	descriptors = func() int {
		open, _ := os.ReadDir("/proc/self/fd")
		return len(open) - 1 // which is the directory
	}
}

// settled is when a process without a call has become idle, many times over, and all n of a host have, however few its processors.
func settled(n int) time.Duration { return time.Second + time.Duration(n)*5*time.Millisecond }

// idle is a rank that makes no call for as long as d says. If it is negative, rank 0 ends without a word instead, and
// the others say when they hear of it.
func idle(ctx context.Context, c *ccl.Comm, d string) error {
	quiet, err := time.ParseDuration(d)
	if err != nil {
		return err
	}
	if err := ccl.Barrier(ctx, c); err != nil {
		return err
	}
	time.Sleep(settled(c.Size()))
	if quiet < 0 {
		if c.Rank() == 0 {
			fmt.Println("ended", time.Now().UnixMicro())
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		<-c.Done()
		fmt.Println("heard", time.Now().UnixMicro())
		time.Sleep(settled(c.Size())) // the ends of hundreds of processes would hold up the others
		return nil
	}
	var a, b syscall.Rusage
	began := time.Now()
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &a); err != nil {
		return err
	}
	time.Sleep(quiet)
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &b); err != nil {
		return err
	}
	took := time.Since(began)
	used := b.Utime.Nano() + b.Stime.Nano() - a.Utime.Nano() - a.Stime.Nano()
	fmt.Println("wakes", int64(float64(b.Nvcsw-a.Nvcsw)/took.Seconds()), "ppm", used*1e6/int64(took))
	return ccl.Barrier(ctx, c)
}

// BenchmarkIdle is what a process takes that makes no call: how often one of its threads wakes, and how much of a core it
// uses.
func BenchmarkIdle(b *testing.B) {
	for _, n := range []int{2, 8, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var wakes, ppm int64
			for range b.N {
				f := job(b, n, "idle 5s")
				wakes += program.Total(f["wakes"]) / int64(n)
				ppm += program.Total(f["ppm"]) / int64(n)
			}
			b.ReportMetric(float64(wakes)/float64(b.N), "wakes/s/process")
			b.ReportMetric(float64(ppm)/1e4/float64(b.N), "%core/process")
		})
	}
}

// BenchmarkIdleDeath is how long after the end of a process the others hear of it that make no call.
func BenchmarkIdleDeath(b *testing.B) {
	for _, n := range []int{2, 8, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var us int64
			for range b.N {
				f := deathOf(b, n)
				us += greatest(f["heard"]) - f["ended"][0]
			}
			b.ReportMetric(float64(us)/1e3/float64(b.N), "ms/heard")
		})
	}
}

// deathOf is a job of n processes of which one ends while all are idle.
func deathOf(t testing.TB, n int) map[string][]int64 {
	t.Helper()
	f := figures(t, n, "idle -1s", false)
	require.Len(t, f["ended"], 1)
	require.Len(t, f["heard"], n-1)
	return f
}

// Processes without a call hardly wake: the bar is ten times what is promised (20 a second).
func TestIdle(t *testing.T) {
	f := job(t, 2, "idle 1s")
	require.Len(t, f["wakes"], 2)
	require.Less(t, greatest(f["wakes"]), int64(200), "wakes a second")
}

// They hear of a death all the same: the bar is ten times what is promised (50 ms).
func TestIdleDeath(t *testing.T) {
	f := deathOf(t, 4)
	require.Less(t, greatest(f["heard"])-f["ended"][0], int64(500_000), "microseconds")
}
