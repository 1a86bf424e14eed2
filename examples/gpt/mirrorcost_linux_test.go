package main

import (
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

var mirroring = flag.Int("mirroring", 0, "TestMirrorCost measures so many rounds of babygpt, and holds the cost of mirroring to what is promised")

// Keeping each rank's optimizer state in the memory of another costs a step little. Runs without it, in every step and in every tenth
// take turns, so that all have the same machine.
func TestMirrorCost(t *testing.T) {
	rounds, flags := *mirroring, "-preset babygpt -steps 30"
	if rounds == 0 {
		if testing.Short() {
			t.Skip("-short: it measures")
		}
		rounds, flags = 1, "-preset char -context 32 -steps 12"
	}
	cases := []struct {
		name, flags string
		most        float64 // of what a step takes without
	}{{"without", "", 0}, {"in every step", "-spares 1 -mirror 1", .15}, {"in every tenth step", "-spares 1 -mirror 10", .04}}
	took := make([][]float64, len(cases)) // per token
	for round := range rounds {
		for i := range cases {
			k := (i + round) % len(cases)
			cmd, out := program(t, "-np 4 -zero 1 -log 1000 "+flags+" "+cases[k].flags)
			require.NoError(t, cmd.Run(), "%s", out)
			took[k] = append(took[k], 1/number(t, out, `: (\d+) tokens/s`))
		}
	}
	var text string
	for k, c := range cases {
		slices.Sort(took[k])
		middle := func(x []float64) float64 { return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }
		more := middle(took[k])/middle(took[0]) - 1
		text += fmt.Sprintf("%s: %.0f tokens/s (%.0f to %.0f), %+.1f %%\n", c.name, 1/middle(took[k]), 1/took[k][len(took[k])-1], 1/took[k][0], 100*more)
		if *mirroring > 0 && c.most > 0 {
			require.Less(t, more, c.most, "%s", text)
		}
	}
	t.Logf("%d rounds of %s on 4 ranks:\n%s", rounds, flags, text)
}
