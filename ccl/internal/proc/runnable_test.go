package proc

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRunnableText(t *testing.T) {
	for _, tc := range []struct {
		text string
		want int
	}{
		{"0.20 0.18 0.12 1/80 11206\n", 1},
		{"38.96 36.73 25.31 61/1723 442\n", 61},
		{"0.00 0.00 0.00 0/1 1", 0},
		{"0.20 0.18 0.12 1", -1},
		{"0.20 0.18 0.12 /80 11206", -1},
		{"0.20 0.18 0.12 -1/80 11206", -1},
		{"0.20 0.18 0.12  1/80 11206", -1},
		{"0.20 0.18 0.12 99999999999999999999/80 1", -1},
		{"", -1},
	} {
		require.Equal(t, tc.want, runnable([]byte(tc.text)), "%q", tc.text)
	}
}

// This thread runs, so there is one at least.
func TestRunnable(t *testing.T) {
	if runtime.GOOS != "linux" {
		require.Equal(t, -1, Runnable())
		return
	}
	require.Positive(t, Runnable())
}

func FuzzRunnable(f *testing.F) {
	f.Add([]byte("0.20 0.18 0.12 1/80 11206\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		require.GreaterOrEqual(t, runnable(text), -1)
	})
}
