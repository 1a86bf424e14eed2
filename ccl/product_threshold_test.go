package ccl_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// thresholds are the sizes in bytes at which the engine goes another way: of a block
// or vector, of all blocks, or of what goes to one peer. Where they lie is the
// engine's affair; the test plays all kinds at all of them.
var thresholds = []int{
	56, 512, // in the flag's cache line; from here on in lines of their own
	2 * kib,                                 // beside the flags; above, in staging memory
	4 * kib,                                 // beside a message's header
	8 * kib,                                 // summed at a time
	32 * kib,                                // latency counts; above, bandwidth
	64 * kib,                                // blocks go by rings; group is fused
	128 * kib, 2 * 128 * kib, 4 * 128 * kib, // chunks of staging memory, and all of it
	5 * 128 * kib, // around it
}

// largeThresholds are for few ranks.
var largeThresholds = []int{
	1 * mib, // a pipe between two ranks
	4 * mib, // streaming stores; what is worked on at a time
	8 * mib,
}

// boundaries are the counts on both sides of a threshold, for a type of that size,
// where it is that of a block, of the blocks of all or of all others, or the share of
// a vector.
func boundaries(kind ccl.Kind, n, bytes, size int) []int {
	var at []int
	switch kind {
	case ccl.KindAllReduce, ccl.KindReduce, ccl.KindBroadcast:
		at = []int{bytes, bytes * n}
		if bytes >= 128*kib {
			at = at[:1]
		}
	case ccl.KindSend, ccl.KindSendRecv:
		at = []int{bytes}
	case ccl.KindBarrier:
		return nil
	default:
		// A part of a chunk is whole cache lines.
		at = []int{bytes, bytes / n, bytes / n &^ 63, bytes / max(n-1, 1), bytes / max(n-1, 1) &^ 63}
		if bytes >= 256*kib {
			at = at[1:3]
		}
	}
	var counts []int
	for _, b := range at {
		counts = append(counts, b/size-1, b/size, b/size+1)
	}
	slices.Sort(counts)
	return slices.Compact(counts)
}

// thresholdCalls are calls at both sides of the thresholds: every kind at every side,
// with the types, operators, roots and in place or not taking turns, so that each
// pair of them comes up.
func thresholdCalls(n int, thresholds []int, yield func(element, shape) bool) {
	number := 0
	for _, kind := range kinds {
		for _, bytes := range thresholds {
			for turn, size := range []int{4, 8, 2, 1} {
				if bytes >= mib && turn > 0 || bytes >= 128*kib && turn > 1 {
					break
				}
				e := ofSize(size, number/3)
				for _, count := range boundaries(kind, n, bytes, e.Type().Size()) {
					number++
					h := mix(uint64(number))
					s := shape{kind: kind, op: ccl.Op(number % int(ccl.Avg+1)), root: int(h % uint64(n)), count: max(count, 0),
						queued: h>>16%8 == 0, number: uint64(number)}
					s.inPlace = h>>8%2 == 0 && s.canBeInPlace()
					s.uneven(n)
					if s.counts != nil { // one block is as long as it says
						s.counts[number%n] = s.count
					}
					if !yield(e, s) {
						return
					}
				}
			}
		}
	}
}

// ofSize is the i-th of the types of that size, again and again.
func ofSize(size, i int) element {
	var all []element
	for _, e := range elements {
		if e.Type().Size() == size {
			all = append(all, e)
		}
	}
	return all[i%len(all)]
}

// thresholdShare: one call in so many is played.
func thresholdShare() uint64 {
	switch {
	case testing.Short() && raceDetector: // which takes ten times as long
		return 128
	case testing.Short():
		return 32
	}
	return 1
}

func playThresholds(t *testing.T, n int, thresholds []int) {
	inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
		played := 0
		thresholdCalls(n, thresholds, func(e element, s shape) bool {
			if mix(s.number^uint64(len(t.Name())))%thresholdShare() != 0 {
				return true
			}
			require.NoError(t, e.play(t.Context(), c, s))
			played++
			return true
		})
		if c.Rank() == 0 {
			t.Logf("%d calls on %v", played, c)
		}
	}, ccltest.Deadline(5*time.Minute))
}

func TestProductThresholds(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5} {
		playThresholds(t, n, thresholds)
	}
}

// The switches at which there must be eight ranks.
func TestProductThresholdsOfMany(t *testing.T) {
	playThresholds(t, 8, []int{2 * kib, 32 * kib, 64 * kib, 128 * kib})
	inWorlds(t, 8, func(t testing.TB, c *ccl.Comm) {
		for number, count := range []int{512 * kib, 512*kib + 1, 512*kib - 1} { // scatter and ring
			if testing.Short() && number > 0 {
				break
			}
			for i, kind := range []ccl.Kind{ccl.KindBroadcast, ccl.KindReduce} {
				s := shape{kind: kind, op: ccl.Max, count: count, root: number, number: uint64(2*number + i)}
				require.NoError(t, elements[number].play(t.Context(), c, s))
			}
		}
	})
}

// Two ranks that write into each other's memory pass by the caches from 16 MiB on.
func TestProductStreams(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		for i, e := range []element{ofSize(4, 0), ofSize(4, 2), ofSize(8, 2)} {
			for j, op := range []ccl.Op{ccl.Sum, ccl.Avg, ccl.Max} {
				count := 16*mib/e.Type().Size() + j - 1
				s := shape{kind: ccl.KindAllReduce, op: op, count: count, inPlace: i+j == 3, number: uint64(3*i + j)}
				require.NoError(t, e.play(t.Context(), c, s))
				if testing.Short() {
					break
				}
			}
		}
	})
}

// The same calls, where ranks read each other's memory, and where they do not: which is the default depends on the CPU.
func TestProductReads(t *testing.T) {
	for _, reads := range []string{"0", "1"} {
		t.Setenv("GOCCL_SHM_READ", reads) // for the processes that are started
		for _, n := range []int{2, 3} {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				thresholdCalls(n, []int{8 * kib, 10 * kib, 16 * kib, 32 * kib, 64 * kib, 512 * kib, 4 * mib}, func(e element, s shape) bool {
					if mix(s.number)%(2*thresholdShare()) == 0 {
						require.NoError(t, e.play(t.Context(), c, s))
					}
					return true
				})
				for number, count := range []int{16 * mib, 16*mib + 1} { // up to here halves are read
					if testing.Short() || n > 2 || reads == "0" {
						break
					}
					s := shape{kind: ccl.KindAllReduce, op: ccl.Sum, count: count, inPlace: number == 1, number: uint64(number)}
					require.NoError(t, ofSize(4, 0).play(t.Context(), c, s))
				}
			}, ccltest.Processes(n), ccltest.Deadline(5*time.Minute))
		}
	}
}

func TestProductThresholdsLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: large calls")
	}
	for _, n := range []int{2, 3} {
		playThresholds(t, n, largeThresholds)
	}
}

// Blocks whose chunks wrap around the staging memory with all remainders.
func TestProductChunks(t *testing.T) {
	for _, n := range []int{2, 3} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			for number := range 24 {
				if testing.Short() && number%4 != n {
					continue
				}
				s := shape{kind: kinds[number%len(kinds)], count: 40_000 + 7_919*number, root: number % n, number: uint64(number)}
				s.uneven(n)
				require.NoError(t, elements[8].play(t.Context(), c, s))
			}
		})
	}
}

func TestBoundaries(t *testing.T) {
	for _, tc := range []struct {
		kind           ccl.Kind
		n, bytes, size int
		want           []int
	}{
		{ccl.KindAllReduce, 3, 2048, 4, []int{511, 512, 513, 1535, 1536, 1537}},
		{ccl.KindSend, 3, 4096, 8, []int{511, 512, 513}},
		{ccl.KindScatter, 2, 2048, 1, []int{1023, 1024, 1025, 2047, 2048, 2049}},
		{ccl.KindBarrier, 2, 2048, 1, nil},
	} {
		if got := boundaries(tc.kind, tc.n, tc.bytes, tc.size); !slices.Equal(got, tc.want) {
			t.Error(fmt.Sprint(tc), got)
		}
	}
}
