package loop

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/history"
)

func TestDivide(t *testing.T) {
	for n, want := range map[int]int{6: 6, 5: 3, 4: 3, 1: 1} {
		require.Equal(t, want, Divide(12, 2)(n))
	}
}

// logged has a Run log a step, and returns the error with which its metrics are closed.
func logged(t *testing.T, r *Run, step int) (err error) {
	t.Helper()
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		h, closed, failed := r.history(t.Context(), c)
		require.NoError(t, failed)
		require.NoError(t, h.Log(t.Context(), step, history.Metric{Name: "loss", Value: 1}))
		err = closed(nil)
	})
	return err
}

// Metrics whose last step could not be written are not whole: no Log after it says so.
func TestMetricsOfTheLastStepAreLost(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("hardware: no " + full)
	}
	require.ErrorContains(t, logged(t, &Run{O: Options{JSON: full}}, 1), "step 1 could not be written: write "+full)
	require.NoError(t, logged(t, &Run{O: Options{JSON: filepath.Join(t.TempDir(), "lines")}}, 1))
}
