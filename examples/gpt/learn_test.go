package main

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// char learns Go's own book in 400 steps, as the README says; with parameters and gradients in bfloat16 it loses 2 % of
// that at most.
func TestLearns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: 800 steps take two minutes of two cores")
	}
	if _, err := os.Stat(filepath.Clean(source(""))); err != nil {
		t.Skip("NOT RUN: no book of the Go distribution here")
	}
	number := func(out, what string) float64 {
		found := regexp.MustCompile(what + `=([0-9.]+)`).FindStringSubmatch(out)
		require.NotNil(t, found, "%s in %s", what, out)
		v, err := strconv.ParseFloat(found[1], 64)
		require.NoError(t, err)
		return v
	}
	curve := func(flags string) (last, validation float64) {
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
		defer cancel()
		cmd, output := program(ctx, t, "-np 2 -steps 400 -eval 400 "+flags)
		require.NoError(t, cmd.Run(), "%s", output)
		out := output.String()
		require.InDelta(t, 4.6, number(out, "step=1 loss"), .2, "it knows nothing yet")
		return number(out, "step=400 loss"), number(out, "step=400 validation")
	}
	last, validation := curve("")
	t.Logf("float32: loss %.4f, validation %.4f", last, validation)
	require.Less(t, last, 2.4)
	require.Less(t, validation, 2.5)
	narrow, narrowValidation := curve("-bf16 -zero 1")
	t.Logf("bfloat16, stage 1: loss %.4f, validation %.4f: %+.2f %%, %+.2f %%", narrow, narrowValidation, 100*(narrow/last-1), 100*(narrowValidation/validation-1))
	require.LessOrEqual(t, narrow, 1.02*last)
	require.LessOrEqual(t, narrowValidation, 1.02*validation)
}
