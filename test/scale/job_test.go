package scale

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/program"
)

// roleVariable tells the test binary, run again as a rank, what to do.
const roleVariable = "GOCCL_TEST_SCALE"

// roles are what a rank can do. Each prints figures, as names and whole numbers.
var roles = map[string]func(ctx context.Context, c *ccl.Comm) error{
	"calls": calls,
	"holds": holds,
}

var began = time.Now()

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := rank(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// rank is one rank of a job.
func rank(role string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	// Of 1,000 processes on 2 cores one may not run for seconds: that is no loss. A killed one is heard of by the end of its connections.
	c, err := ccl.Join(ctx, &ccl.Options{PeerTimeout: time.Minute})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("began", began.UnixMicro(), "joined", time.Now().UnixMicro())
	return roles[role](ctx, c)
}

// callsEach is how many calls a rank makes.
const callsEach = 9

// calls makes a few calls of 8 bytes, whose results it knows.
func calls(ctx context.Context, c *ccl.Comm) error {
	for i := range callsEach {
		v := []int64{int64(c.Rank() + i)}
		if err := ccl.AllReduce(ctx, c, v, v, ccl.Sum); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
		if n := int64(c.Size()); v[0] != n*(n-1)/2+n*int64(i) {
			return fmt.Errorf("rank %d: call %d: wrong sum %d", c.Rank(), i, v[0])
		}
	}
	fmt.Println("called", time.Now().UnixMicro())
	if err := ccl.Barrier(ctx, c); err != nil {
		return err
	}
	fmt.Println("proportional", program.KiB("/proc/self/smaps_rollup", "Pss:")<<10, "descriptors", descriptors())
	return ccl.Barrier(ctx, c) // what ends gives its part of what is shared to the others
}

// descriptors is how many files this process has open, -1 where that cannot be told.
func descriptors() int {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return -1
	}
	return len(open) - 1 // which is the directory
}

// heap is what this process has in use, after collections that have nothing more to free.
func heap() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// job runs n ranks on so many hosts in a role, and returns their figures by name. One of them may
// be meant to fail: Spawn's error is returned.
func job(t testing.TB, n, hosts int, role string) (map[string][]int64, error) {
	if hosts == 1 {
		hosts = 0
	}
	text, err := program.Itself(t, 15*time.Minute, boot.Command{N: n, Hosts: hosts, KeepGoing: true, Stderr: os.Stderr}, "", roleVariable+"="+role)
	return program.Figures(t, text), err
}

// seconds is the time from the least of a to the greatest of b, which are in microseconds.
func seconds(a, b []int64) float64 { return float64(slices.Max(b)-slices.Min(a)) / 1e6 }
