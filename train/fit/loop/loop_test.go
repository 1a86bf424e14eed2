package loop

import (
	"errors"
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
func logged(t *testing.T, file string, goesOn bool, step int) (err error) {
	t.Helper()
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		r := &Run{O: Options{JSON: file}}
		h, closed, failed := r.history(t.Context(), c, goesOn)
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
	require.ErrorContains(t, logged(t, full, false, 1), "step 1 could not be written: write "+full)
	require.NoError(t, logged(t, filepath.Join(t.TempDir(), "lines"), false, 1))
}

// A run that goes on writes behind the metrics of the steps before, and one that begins begins the file.
func TestMetricsOfARunThatGoesOn(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lines")
	for _, tc := range []struct {
		goesOn bool
		step   int
		want   []int
	}{{false, 1, []int{1}}, {true, 2, []int{1, 2}}, {true, 3, []int{1, 2, 3}}, {true, 2, []int{1, 2}}, {false, 9, []int{9}}} {
		require.NoError(t, logged(t, name, tc.goesOn, tc.step))
		f, err := os.Open(name)
		require.NoError(t, err)
		h, err := history.Read(f)
		require.NoError(t, errors.Join(err, f.Close()))
		var steps []int
		for step := range h.Series("loss") {
			steps = append(steps, step)
		}
		require.Equal(t, tc.want, steps)
	}
}

func TestFlagsAreRefused(t *testing.T) {
	fine := func() *Flags {
		c := &Flags{Rows: 8, LR: 1}
		c.Fit.Micro = 1
		return c
	}
	require.NoError(t, fine().Check())
	for _, tc := range []struct {
		change func(c *Flags)
		want   string
	}{
		{func(c *Flags) { c.Run.JSON, c.Run.SVG = "x", "./x" }, "-svg ./x: -json writes that file; give another name"},
		{func(c *Flags) { c.Rows = 0 }, "-rows 0 -micro 1 -log 0: give at least 1"},
		{func(c *Flags) { c.Fit.Micro = 0 }, "-rows 8 -micro 0 -log 0: give at least 1"},
		{func(c *Flags) { c.Run.Log = -1 }, "-rows 8 -micro 1 -log -1: give at least 1"},
	} {
		c := fine()
		tc.change(c)
		require.EqualError(t, c.Check(), tc.want)
	}
}

func TestPlace(t *testing.T) {
	c := &Flags{Rows: 8}
	for _, tc := range []struct {
		micro, n int
		want     string
	}{
		{2, 2, ""}, {2, 3, "-rows 8 does not divide among 3 ranks x -micro 2; -rows 6 does"},
		{0, 2, "2 ranks x -micro 0: give at least one of each, and -micro at most 1073741824"},
		{1, 0, "0 ranks x -micro 1: give at least one of each, and -micro at most 1073741824"},
		{1 << 62, 4, "4 ranks x -micro 4611686018427387904: give at least one of each, and -micro at most 1073741824"},
	} {
		c.Fit.Micro = tc.micro
		if err := c.Place(tc.n); tc.want == "" {
			require.NoError(t, err)
			require.Equal(t, 2, c.Fit.Rows)
		} else {
			require.EqualError(t, err, tc.want)
		}
	}
}
