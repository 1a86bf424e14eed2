package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// char learns Go's own book in 400 steps, as the README says; with parameters and gradients in bfloat16 it has lost 2 % of
// that at most after 200.
func TestLearns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 600 steps take 90 seconds of two cores")
	}
	if _, err := os.Stat(filepath.Clean(source(""))); err != nil {
		t.Skip("NOT RUN: no book of the Go distribution here")
	}
	// trained is what training for so many steps prints.
	trained := func(steps int, flags string) *lines {
		cmd, out := program(t, fmt.Sprintf("-np 2 -steps %d -eval 200 %s", steps, flags))
		require.NoError(t, cmd.Run(), "%s", out)
		require.InDelta(t, 4.6, number(t, out, "step=1 loss=([0-9.]+)"), .2, "it knows nothing yet")
		return out
	}
	wide := trained(400, "")
	require.Less(t, number(t, wide, "step=400 loss=([0-9.]+)"), 2.4)
	require.Less(t, number(t, wide, "step=400 validation=([0-9.]+)"), 2.5)
	narrow := trained(200, "-bf16 -zero 1")
	for _, what := range []string{"step=200 loss=([0-9.]+)", "step=200 validation=([0-9.]+)"} {
		want, got := number(t, wide, what), number(t, narrow, what)
		t.Logf("%s: %.4f in float32, %.4f in bfloat16 at stage 1: %+.2f %%", what, want, got, 100*(got/want-1))
		require.LessOrEqual(t, got, 1.02*want)
	}
}
