//go:build linux

package promises

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
	"github.com/goccl/goccl/internal/race"
)

// What a process of the tests below does, as partVar says.
const replacedPart, idlePart = "replaced", "idle spare"

// TestSpareProcess is not a test of its own: it is what the processes run. The job has one spare.
func TestSpareProcess(t *testing.T) {
	part := os.Getenv(partVar)
	if part != replacedPart && part != idlePart {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	world, _ := strconv.Atoi(os.Getenv("GOCCL_RANK"))
	var waits syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &waits))
	began := time.Now()
	c, err := ccl.Join(ctx, &ccl.Options{Spares: 1, PeerTimeout: peerTimeout, Log: slog.New(slog.DiscardHandler)})
	if errors.Is(err, ccl.ErrUnused) {
		sayAt("unused", world, err)
		quiet(t, waits, began)
		return
	}
	require.NoError(t, err)
	defer c.Close()
	if part == idlePart {
		idle, _ := time.ParseDuration(argument())
		time.Sleep(idle)
		require.NoError(t, ccl.Barrier(ctx, c))
		sayAt("over", world, nil)
		return
	}
	if len(c.Fresh()) == 0 {
		require.NoError(t, ccl.Barrier(ctx, c))
		if c.Rank() == victim {
			time.Sleep(20 * time.Millisecond) // the others are in their call
			sayAt("victim", world, nil)
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		require.ErrorIs(t, callOn(ctx, c), ccl.ErrRankLost)
		next, err := c.Replace(ctx)
		require.NoError(t, err)
		defer next.Close()
		c = next
	}
	x := []int{c.Rank()}
	require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
	sayAt("whole", world, nil)
	require.Equal(t, c.Size()*(c.Size()-1)/2, x[0])
	require.Equal(t, []int{victim}, c.Fresh())
}

// quiet prints what this process, a spare, has used since it began to join.
func quiet(t *testing.T, before syscall.Rusage, began time.Time) {
	var after syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &after))
	used := func(u *syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	_, rss, _ := strings.Cut(string(status), "RssAnon:") // what is of files is the program, which others have as well
	kib, _ := strconv.Atoi(strings.Fields(rss)[0])
	fmt.Printf("spare: %d ns of CPU in %d ns, %d KiB\n", used(&after)-used(&before), time.Since(began), kib)
}

// A rank is killed and a spare waits: all have a Comm of the same size with the old numbers, and have made a call on it.
func TestR17Replaced(t *testing.T) {
	trials := times(1, 10)
	for _, tc := range []struct {
		what     string
		n, hosts int
		promise  time.Duration
	}{
		{"a rank of 4 is killed, a spare waits: all have made a call together again", 4, 0, 100 * time.Millisecond},
		{"the same, on 5 hosts of 1 rank", 4, 5, 100 * time.Millisecond},
		{"a rank of 64 is killed, on 2 cores", 64, 0, time.Second},
	} {
		if tc.n > 4 && !*write { // it takes the machine for itself
			continue
		}
		if tc.hosts > 0 && !*write { // TestR17ReplacedBetweenHosts
			continue
		}
		var took []time.Duration
		for range trials {
			lines, text := processesOf(t, "TestSpareProcess", tc.n+1, tc.hosts, replacedPart, "")
			ended := first(t, lines, "victim", victim, text).at
			last := time.Duration(0)
			for r := range tc.n + 1 {
				if r != victim {
					last = max(last, first(t, lines, "whole", r, text).at.Sub(ended))
				}
			}
			took = append(took, last)
		}
		middle, largest := spread(took)
		record(t, 17, "R17", tc.what, "≤ "+tc.promise.String(), "median %v, max %v (%d trials)", round(middle), round(largest), trials)
		asserted(t, tc.what, largest, tc.promise)
	}
}

// Ranks are lost at random, two of them, while a replacement is under way or not. All that live have the same Comms, with the same
// members, or the same error.
func TestR18OneReplacement(t *testing.T) {
	jobs := 16
	if *write {
		jobs = 300
	}
	replaced := 0
	for seed := range jobs {
		replaced += oneReplacement(t, uint64(seed))
	}
	require.Positive(t, replaced)
	record(t, 18, "R18", "ranks are lost, some in the replacement: which Comms the others have", "the same on all, or the same error", "the same, %d jobs with %d replacements", jobs, replaced)
}

// oneReplacement runs a random job, and returns how many replacements its first rank saw.
func oneReplacement(t *testing.T, seed uint64) int {
	r := rand.New(rand.NewPCG(seed, 18))
	n, spares := 3+r.IntN(3), 1+r.IntN(2)
	opts := []ccltest.Option{ccltest.Spares(spares), ccltest.With(ccl.Options{Timeout: time.Minute, PeerTimeout: 20 * time.Second, Log: slog.New(slog.DiscardHandler)})}
	hosts := max(r.IntN(4)-1, 0)
	cuts := hosts == 0
	if hosts > 0 {
		opts = append(opts, ccltest.RoundRobin(1+hosts))
		if seed%8 != 0 { // an eighth talks by TCP
			opts = append(opts, ccltest.World(seed, simnet.Link{Delay: 200 * time.Microsecond, Jitter: 100 * time.Microsecond}, nil))
		}
	} else {
		opts = append(opts, ccltest.VirtualTime(), ccltest.Deadline(time.Hour))
	}
	for range 2 {
		rank, nth := r.IntN(n+spares), 1+r.IntN(14)
		if hosts > 0 { // the first rank of each host stays: it speaks for the others that are in the same process
			rank = 1 + hosts + r.IntN(n+spares-hosts-1)
		}
		if nth += 4; rank < n { // a spare waits after 4 calls, and a worker's NewComm has returned after 5: it would fail for want of spares
			nth++
		}
		if cuts && rank < n && r.IntN(2) == 0 {
			cuts = false // or no side may have a majority
			opts = append(opts, ccltest.Partition(rank, nth))
		} else {
			opts = append(opts, ccltest.Kill(rank, nth))
		}
	}
	var mu sync.Mutex
	ends, most := map[string]bool{}, 0 // how ranks ended
	var ids atomic.Int64
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		t.Cleanup(func() { c.Close() })
		id, step := ids.Add(1), 0
		for round := 0; ; round++ {
			who := make([]int64, n)
			err := ccl.AllGather(t.Context(), c, who, []int64{id})
			if err == nil {
				at := []int{step}
				if err = ccl.AllReduce(t.Context(), c, at, at, ccl.Max); err == nil {
					step = at[0]
					c.Restored()
				}
			}
			for ; err == nil && step < 8; step++ {
				x := []int{1 << c.Rank()}
				if err = ccl.AllReduce(t.Context(), c, x, x, ccl.Sum); err == nil {
					require.Equal(t, 1<<n-1, x[0], "seed %d", seed)
				}
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				ends[fmt.Sprint("all steps, with ", who)], most = true, max(most, round)
				return
			}
			next, err := c.Replace(t.Context())
			var e *ccl.Error
			if errors.As(err, &e) && e.Code == ccl.ErrRankLost && e.Peer == c.Rank() { // it has been given up
				return
			}
			if e != nil && e.Code == ccl.ErrRankLost && len(e.Missing) > 0 { // too few spares
				rest, err := c.Shrink(t.Context())
				require.NoError(t, err, "seed %d", seed)
				defer rest.Close()
				left := make([]int64, rest.Size())
				require.NoError(t, ccl.AllGather(t.Context(), rest, left, []int64{id}), "seed %d", seed)
				mu.Lock()
				defer mu.Unlock()
				ends[fmt.Sprintf("no spare for %v, left are %v", e.Missing, left)] = true
				return
			}
			require.NoError(t, err, "seed %d", seed)
			require.Equal(t, []int{n, c.Rank()}, []int{next.Size(), next.Rank()}, "seed %d", seed)
			c.Close()
			c = next
		}
	}, opts...)
	require.LessOrEqual(t, len(ends), 1, "seed %d: %v", seed, ends)
	return most
}

// A spare that waits uses hardly anything; its death fails no call: see TestSpareLost of package ccl.
func TestR20SpareIsQuiet(t *testing.T) {
	idle := 2 * time.Second
	if *write {
		idle = 30 * time.Second
	}
	for _, tc := range []struct {
		what, end string
		hosts     int
	}{
		{"a spare that waits: processor and memory of its own", "all workers close: a spare hears that the job is over", 0},
		{"a spare that waits on a host of its own", "the same, on another host", 5},
	} {
		lines, text := processesOf(t, "TestSpareProcess", 5, tc.hosts, idlePart, idle.String())
		over := first(t, lines, "over", 0, text).at
		for r := range 4 {
			if at := first(t, lines, "over", r, text).at; at.After(over) {
				over = at
			}
		}
		heard := first(t, lines, "unused", 4, text).at.Sub(over)
		m := regexp.MustCompile(`spare: (\d+) ns of CPU in (\d+) ns, (\d+) KiB`).FindStringSubmatch(text)
		require.NotNil(t, m, text)
		number := func(s string) float64 { x, _ := strconv.ParseFloat(s, 64); return x }
		share, mib := number(m[1])/number(m[2]), number(m[3])/1024
		record(t, 20, "R20", tc.what, "≤ 0.5 % of a core, ≤ 16 MB", "%.2f %% in %v, %.1f MiB", 100*share, idle, mib)
		record(t, 20, "R20", tc.end, "≤ 1s", "%v", round(heard))
		asserted(t, tc.end, heard, time.Second)
		if !race.Enabled { // which would be what it measures
			require.Less(t, share, 0.05, "ten times what is promised")
		}
		require.Less(t, mib, 160.0, "ten times what is promised")
	}
}
