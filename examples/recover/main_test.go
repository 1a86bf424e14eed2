package main

import (
	"bytes"
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
	run := func(hosts, victim int) string {
		var out bytes.Buffer
		err := boot.Spawn(t.Context(), boot.Command{N: 4, Hosts: hosts, Path: path, KeepGoing: true,
			Args: []string{"-kill", strconv.Itoa(victim)}, Stdout: &out, Stderr: &out})
		if victim < 0 {
			require.NoError(t, err, "%s", &out)
		}
		return out.String()
	}
	end := regexp.MustCompile(`(\d) ranks: loss ([0-9.]+) after 200 steps`)
	whole := end.FindStringSubmatch(run(0, -1))
	require.Equal(t, "4", whole[1])
	want, err := strconv.ParseFloat(whole[2], 64)
	require.NoError(t, err)
	for _, hosts := range []int{0, 2, 4} {
		for _, victim := range []int{0, 2} {
			out := run(hosts, victim)
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
}
