package plane

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// onCores is a rank among others of one host, each of which runs on the processor that cores names, if it has said so.
func onCores(t *testing.T, me int, cores ...int) *Member {
	t.Helper()
	c := ranks(t, len(cores), Options{})[me]
	for r, core := range cores {
		c.Share.Local.Core(r).Store(uint64(1 + core))
	}
	c.Standing.spread.core = cores[me]
	return c
}

func TestTooMany(t *testing.T) {
	for _, tc := range []struct {
		name           string
		me, processors int
		cores          []int
		want           int
	}{
		{"two and two", 0, 2, []int{0, 0, 1, 1}, 0},
		{"three and one", 0, 2, []int{0, 0, 1, 0}, 3},
		{"not the first of them", 1, 2, []int{0, 0, 1, 0}, 0},
		{"the one", 2, 2, []int{0, 0, 1, 0}, 0},
		{"all on one", 0, 2, []int{1, 1, 1, 1}, 4},
		{"an odd one", 0, 2, []int{0, 0, 1}, 0},
		{"all three", 0, 2, []int{0, 0, 0}, 3},
		{"three of eight on one of four", 0, 4, []int{0, 0, 0, 1, 1, 2, 3, 3}, 3},
		{"three of nine, the share of one", 0, 4, []int{0, 0, 0, 1, 1, 2, 2, 3, 3}, 0},
		{"one has not said where it is", 0, 2, []int{0, 0, -1, 0}, 0},
		{"one is beyond what is counted", 0, 2, []int{0, 0, coresMost, 0}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := onCores(t, tc.me, tc.cores...)
			var ranks [coresMost]uint16
			require.Equal(t, tc.want, c.Standing.spread.tooMany(&c.Share, tc.processors, &ranks))
			if tc.want > 0 {
				for _, core := range tc.cores {
					ranks[core]--
				}
				require.Zero(t, ranks, "it has counted each once")
			}
		})
	}
}

// A rank waits without giving way once all ranks of its processor have posted its round.
func TestWaitsAlone(t *testing.T) {
	const round = 7
	for _, tc := range []struct {
		name   string
		cores  []int
		posted []uint32 // by rank; this one is rank 1
		want   bool
	}{
		{"nobody else is there", []int{0, 1, 0}, []uint32{6, 7, 6}, true},
		{"one there has posted", []int{1, 1, 0}, []uint32{7, 7, 6}, true},
		{"one there has posted more", []int{1, 1, 0}, []uint32{8, 7, 6}, true},
		{"one there has not", []int{1, 1, 0}, []uint32{6, 7, 7}, false},
		{"one of two has not", []int{1, 1, 1}, []uint32{7, 7, 6}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := onCores(t, 1, tc.cores...)
			c.Order.Round = round
			for r, n := range tc.posted {
				for i := range n + 1 {
					atomic.StoreUint64(c.Share.Local.Flag(r, i), uint64(i)<<32|1)
				}
			}
			assert.False(t, c.Standing.spread.waitsAlone(&c.Order, &c.Current), "a call without rounds")
			c.Current.lockstep = true
			assert.Equal(t, tc.want, c.Standing.spread.waitsAlone(&c.Order, &c.Current))
		})
	}
}

// A rank says where it runs, and looks where the others are again and again, less often while it has to move.
func TestStandOn(t *testing.T) {
	c := onCores(t, 0, -1) // alone, it stays where it is
	if proc.Core() < 0 {
		c.Standing.spread.standOn(&c.Standing)
		require.Zero(t, c.Share.Local.Core(0).Load(), "not known here")
		return
	}
	c.Standing.spread.standOn(&c.Standing)
	require.NotZero(t, c.Share.Local.Core(0).Load())
	for range 3 {
		require.Equal(t, []int{gapLeast, gapLeast}, []int{c.Standing.spread.gap, c.Standing.spread.laps})
		for range gapLeast {
			require.Positive(t, c.Standing.spread.laps)
			c.Standing.spread.standOn(&c.Standing)
		}
	}
	c.Standing.spread.gap = gapMost
	for range gapLeast {
		c.Standing.spread.standOn(&c.Standing)
	}
	require.Equal(t, gapMost/2, c.Standing.spread.laps)
}

// Goroutines of one process share its threads: they give way, and don't look where they run.
func TestStaysOn(t *testing.T) {
	c := ranks(t, 2, Options{})[0]
	c.Current.lockstep = true
	assert.False(t, c.staysOn(1), "goroutines")
	assert.Zero(t, c.Share.Local.Core(0).Load())
}
