package progress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeft(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	c := New(2, []int{0, 64 << 10, 192 << 10}, func(int) int { return 10 }, 0)
	require.Zero(t, c.Left(0), "nothing is known")
	c.Measured(0, s, 50*ms)
	require.Equal(t, 2*s+4*s+(1+2+4)*s, c.Left(1), "the rest of this curve, and another")
	c.Measured(1, s, 50*ms)
	require.Equal(t, 2*s+(1+1+2)*s, c.Left(2))
	c.Measured(2, s, 50*ms)
	require.Equal(t, 3*s, c.Left(0), "the second curve, as the first one was")
	c.Measured(0, s, 50*ms)
	c.Measured(1, s, 50*ms)
	require.Equal(t, s, c.Left(2))
	c.Measured(2, s, 50*ms)
	c.Measured(3, s, 50*ms)
	c.Measured(-1, s, 50*ms)
	c.Measured(1, 0, 0)
	require.Equal(t, s, c.lines[1].took, "a line that is left out teaches nothing")
}

// Where large lines have fewer calls, that counts.
func TestLeftByCalls(t *testing.T) {
	c := New(1, []int{0, 448 << 10}, func(bytes int) int { return map[int]int{0: 500, 448 << 10: 20}[bytes] }, 0)
	c.Measured(0, time.Second, time.Millisecond)
	require.Equal(t, 8*time.Second*20/500, c.Left(1).Round(time.Millisecond))
}

// What is said of the time left is true within 30 %, or nothing is: with defaults, with -time and with -n, on a machine
// whose caches end at 4 MiB, where single iterations and checks take some time as well.
func TestLeftIsTrue(t *testing.T) {
	var sizes []int
	for b := 8; b <= 64<<20; b *= 2 {
		sizes = append(sizes, b)
	}
	call := func(bytes int) time.Duration {
		perByte := .05
		if bytes > 4<<20 {
			perByte = .07
		}
		return 300*time.Nanosecond + time.Duration(float64(bytes)*perByte)
	}
	for _, tc := range []struct {
		long  time.Duration
		iters int
		said  int // lines before which something is said, at least
	}{{10 * time.Millisecond, 20, 3}, {time.Second, 20, 22}, {0, 50, 3}} {
		c := New(1, sizes, func(int) int { return tc.iters }, tc.long)
		took := func(i int) time.Duration {
			return 2*max(tc.long, time.Duration(tc.iters)*call(sizes[i])) + 6*call(sizes[i]) + 100*time.Microsecond
		}
		said := 0
		for i := range sizes {
			var left time.Duration
			for j := i; j < len(sizes); j++ {
				left += took(j)
			}
			if guess := c.Left(i); guess > 0 {
				said++
				require.InDelta(t, 1, guess.Seconds()/left.Seconds(), .3, "%v, before %d bytes", tc.long, sizes[i])
			}
			c.Measured(i, took(i), call(sizes[i]))
		}
		require.GreaterOrEqual(t, said, tc.said, "%v", tc.long)
	}
}

func TestText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "", 14400 * time.Millisecond: "14s", 123 * time.Second: "2m5s", 400 * time.Millisecond: "", 2 * time.Hour: "2h0m0s",
	} {
		require.Equal(t, want, Text(d))
	}
}
