// Package cost measures what a job costs beside its collectives: how long it takes
// to start, how much memory it takes, and what it takes while no call is made. Hardly anything is asserted: machines differ.
//
//	go test ./test/cost -bench . -benchtime 5x
package cost

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/race"
	"github.com/goccl/goccl/test/program"
)

// roleVariable tells the test binary, run again as a rank, what to do.
const roleVariable = "GOCCL_TEST_COST"

// idleFor is what a rank in the role "idle" does, where the system tells what a process takes.
var idleFor func(ctx context.Context, c *ccl.Comm, d string) error

// descriptors is how many files this process has open, where the system tells.
var descriptors = func() int { return 0 }

var began = time.Now()

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	default:
		if err := rank(role); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// rank is one rank of a measured job. It prints its figures, by name.
func rank(role string) error {
	ctx := context.Background()
	c, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println("began", began.UnixMicro(), "joined", time.Now().UnixMicro())
	if role == "join" {
		return ccl.Barrier(ctx, c)
	}
	if role == "calls" {
		return calls(ctx, c)
	}
	if how, ok := strings.CutPrefix(role, "messages "); ok {
		return messages(ctx, c, how)
	}
	if d, ok := strings.CutPrefix(role, "idle "); ok {
		return idleFor(ctx, c, d)
	}
	n, err := strconv.Atoi(role)
	if err != nil {
		return err
	}
	dst, src := make([]float32, n/4), make([]float32, n/4)
	for i := range src {
		src[i], dst[i] = 1, 1
	}
	runtime.GC()
	before := resident()
	for range 3 {
		if err := ccl.AllReduce(ctx, c, dst, src, ccl.Sum); err != nil {
			return err
		}
	}
	if dst[n/8] != float32(c.Size()) {
		return fmt.Errorf("rank %d: wrong sum %v", c.Rank(), dst[n/8])
	}
	fmt.Println("added", resident()-before, "proportional", proportional(), "buffers", 2*n)
	return ccl.Barrier(ctx, c)
}

// callsEach is how many calls a rank makes in the role "calls".
const callsEach = 9

// calls makes that many of 8 bytes, the first of which waits for the last rank to join.
func calls(ctx context.Context, c *ccl.Comm) error {
	if c.Rank() == 0 {
		fmt.Println("descriptors", descriptors())
	}
	v := []int64{1}
	for i := range callsEach {
		if err := ccl.AllReduce(ctx, c, v, v, ccl.Max); err != nil {
			return fmt.Errorf("call %d: %w", i, err)
		}
	}
	if err := ccl.AllReduce(ctx, c, v, v, ccl.Sum); err != nil {
		return err
	}
	if v[0] != int64(c.Size()) {
		return fmt.Errorf("rank %d: wrong sum %v", c.Rank(), v[0])
	}
	fmt.Println("called", time.Now().UnixMicro())
	return ccl.Barrier(ctx, c)
}

// resident is this process's resident memory in bytes.
func resident() int64 { return program.KiB("/proc/self/status", "VmRSS:") << 10 }

// proportional is the same, with shared pages divided among those who map them.
func proportional() int64 { return program.KiB("/proc/self/smaps_rollup", "Pss:") << 10 }

// job runs n ranks of this binary in a role and returns their figures by name.
func job(t testing.TB, n int, role string) map[string][]int64 {
	return figures(t, n, role, true)
}

// figures is job; well says that all ranks must end well.
func figures(t testing.TB, n int, role string, well bool) map[string][]int64 {
	return run(t, launch{path: os.Args[0], n: n, role: role}, well)
}

// launch is n ranks of a test binary of this package, in a role, as on so many hosts: 0 is one, as it is.
type launch struct {
	path     string
	n, hosts int
	role     string
}

// run is figures of l.
func run(t testing.TB, l launch, well bool) map[string][]int64 {
	text, err := program.Itself(t, 5*time.Minute, boot.Command{N: l.n, Hosts: l.hosts, Path: l.path, KeepGoing: !well, Stderr: os.Stderr}, "", roleVariable+"="+l.role)
	if well {
		require.NoError(t, err)
	} else {
		require.Error(t, err)
	}
	return program.Figures(t, text)
}

func greatest(v []int64) int64 { return slices.Max(v) }

func least(v []int64) int64 { return slices.Min(v) }

// BenchmarkJoin is the time from the last process's start until the last has joined.
func BenchmarkJoin(b *testing.B) {
	for _, n := range []int{2, 8, 64, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var us int64
			for range b.N {
				f := job(b, n, "join")
				us += greatest(f["joined"]) - greatest(f["began"])
			}
			b.ReportMetric(float64(us)/1e3/float64(b.N), "ms/join")
		})
	}
}

// BenchmarkCalls is how long the ranks of one host, many more than it has processors, take to join, from the first process's
// start on, and then for a few calls.
func BenchmarkCalls(b *testing.B) {
	for _, n := range []int{64, 256, 512} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var join, call, open int64
			for range b.N {
				f := job(b, n, "calls")
				join += greatest(f["joined"]) - least(f["began"])
				call += greatest(f["called"]) - greatest(f["joined"])
				open += greatest(f["descriptors"])
			}
			b.ReportMetric(float64(join)/1e3/float64(b.N), "ms/join")
			b.ReportMetric(float64(call)/1e3/float64(b.N), fmt.Sprintf("ms/%d-calls", callsEach+1))
			b.ReportMetric(float64(open)/float64(b.N), "descriptors")
		})
	}
}

// Hundreds of ranks of one host join and call, on two processors, in ten times what is promised at most (10 s each), and rank 0
// has no connection to each of them.
func TestManyRanks(t *testing.T) {
	n := 512
	if testing.Short() || race.Enabled {
		n = 64
	}
	f := job(t, n, "calls")
	require.Len(t, f["called"], n)
	require.Less(t, greatest(f["joined"])-least(f["began"]), int64(100e6), "microseconds to join")
	require.Less(t, greatest(f["called"])-greatest(f["joined"]), int64(100e6), "microseconds for the calls")
	require.LessOrEqual(t, greatest(f["descriptors"]), int64(65), "64 and one for each host")
}

// BenchmarkMemory is what an all-reduce of 64 MiB adds to a rank's resident memory,
// and what the job takes in all beyond its own buffers.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{2, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var added, beyond int64
			for range b.N {
				f := job(b, n, strconv.Itoa(64<<20))
				added += greatest(f["added"])
				beyond += program.Total(f["proportional"]) - program.Total(f["buffers"])
			}
			b.ReportMetric(float64(added)/(1<<20)/float64(b.N), "MiB-added/rank")
			b.ReportMetric(float64(beyond)/(1<<20)/float64(b.N), "MiB-beyond-buffers/job")
		})
	}
}

// TestFigures makes sure that the benchmarks have something to measure.
func TestFigures(t *testing.T) {
	f := job(t, 2, "4096")
	require.Len(t, f["joined"], 2)
	require.Len(t, f["added"], 2)
	require.Equal(t, []int64{8192, 8192}, f["buffers"])
}
