package main

import (
	"bytes"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/test/program"
)

func TestLearnsWithoutLoss(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		tr := newTraining(c)
		require.NoError(t, tr.advance(t.Context()))
		first := tr.loss
		require.NoError(t, tr.run(t.Context()))
		require.Less(t, tr.loss, first/2, "it learns")
	})
}

// A rank is killed; the others say so, go on from the step they were in, and end with
// a lower loss: on one host, and on several.
func TestGoesOn(t *testing.T) {
	path := program.Build(t)
	run := func(hosts, victim, spares int) string {
		var out bytes.Buffer
		err := boot.Spawn(t.Context(), boot.Command{N: 4 + spares, Hosts: hosts, Path: path, KeepGoing: true,
			Args: []string{"-kill", strconv.Itoa(victim)}, Env: append(os.Environ(), "GOCCL_SPARES="+strconv.Itoa(spares)), Stdout: &out, Stderr: &out})
		if victim < 0 {
			require.NoError(t, err, "%s", &out)
		}
		return out.String()
	}
	end := regexp.MustCompile(`(\d) ranks: loss ([0-9.]+) after 200 steps`)
	whole := end.FindStringSubmatch(run(0, -1, 0))
	require.Equal(t, "4", whole[1])
	want, err := strconv.ParseFloat(whole[2], 64)
	require.NoError(t, err)
	for _, hosts := range []int{0, 2, 4} {
		for _, victim := range []int{0, 2} {
			out := run(hosts, victim, 0)
			require.Regexp(t, `step (50|51): .*rank `+strconv.Itoa(victim)+` lost`, out)
			require.Contains(t, out, "going on with 3 ranks")
			got := end.FindStringSubmatch(out)
			require.NotNil(t, got, out)
			require.Equal(t, "3", got[1])
			loss, err := strconv.ParseFloat(got[2], 64)
			require.NoError(t, err)
			require.InDelta(t, want, loss, 0.01, "the same samples, so the same network: %s", out)
		}
	}
	// With a spare there are four again. All steps are those of a run in which nobody is lost, to the digits shown.
	for _, victim := range []int{-1, 0, 2} {
		out := run(0, victim, 1)
		require.Equal(t, whole[0], end.FindString(out), out)
		if victim >= 0 {
			require.Contains(t, out, "going on with 4 ranks")
			require.Contains(t, out, "replaced by spares: ["+strconv.Itoa(victim)+"]")
		}
	}
	for _, hosts := range []int{2, 5} { // the sums of other hosts have other bits, where the spare is on another
		got := end.FindStringSubmatch(run(hosts, 2, 1))
		require.Equal(t, "4", got[1])
		loss, err := strconv.ParseFloat(got[2], 64)
		require.NoError(t, err)
		require.InDelta(t, want, loss, 0.01)
	}
}
