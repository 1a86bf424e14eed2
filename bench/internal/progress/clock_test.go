package progress

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLeft(t *testing.T) {
	const s = time.Second
	c := New(2, []int{0, 64 << 10, 192 << 10}, func(int) int { return 10 })
	require.Zero(t, c.Left(0), "nothing is known")
	c.Measured(0, s)
	require.Equal(t, 2*s+4*s+(1+2+4)*s, c.Left(1), "the rest of this curve, and another")
	c.Measured(1, s)
	require.Equal(t, 2*s+(1+1+2)*s, c.Left(2))
	c.Measured(2, s)
	require.Equal(t, 3*s, c.Left(0), "the second curve, as the first one was")
	c.Measured(0, s)
	c.Measured(1, s)
	require.Equal(t, s, c.Left(2))
	c.Measured(2, s)
	c.Measured(3, s)
	c.Measured(-1, s)
	c.Measured(1, 0)
	require.Equal(t, s, c.took[1], "a line that is left out teaches nothing")
}

// Where large lines have fewer calls, that counts.
func TestLeftByCalls(t *testing.T) {
	c := New(1, []int{0, 960 << 10}, func(bytes int) int { return map[int]int{0: 500, 960 << 10: 20}[bytes] })
	c.Measured(0, time.Second)
	require.Equal(t, 16*time.Second*20/500, c.Left(1).Round(time.Millisecond))
}

func TestText(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "", 14400 * time.Millisecond: "14s", 123 * time.Second: "2m5s", 400 * time.Millisecond: "", 2 * time.Hour: "2h0m0s",
	} {
		require.Equal(t, want, Text(d))
	}
}
