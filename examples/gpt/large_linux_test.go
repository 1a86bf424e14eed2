package main

import (
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

var large = flag.Bool("large", false, "TestLarge trains gpt2-85m on 4 ranks, which hold 6 GB at stage 0")

// gpt2-85m trains on 4 ranks at each stage within the memory of the formula and its activations.
func TestLarge(t *testing.T) {
	preset, stages := "gpt2-85m", []int{0, 1, 2, 3}
	if !*large {
		if testing.Short() {
			t.Skip("-short: 40 MB of parameters on each of 4 ranks")
		}
		preset, stages = "babygpt", []int{0, 3}
	}
	first := 0.
	for _, stage := range stages {
		args := fmt.Sprintf("-preset %s -context 64 -rows 4 -steps 3 -lr 1e-4 -zero %d", preset, stage)
		cmd, out := program(t, "-np 4 "+args)
		require.NoError(t, cmd.Run(), "%s", out)
		c := words(t, args)
		require.NoError(t, c.place(4))
		most, unit := c.memory(93)/1e6, float64(4*12*c.Width*c.Width)/1e6
		if stage >= 2 { // two buffers of gradients of a unit; at stage 3 of parameters, too
			most += 2 * unit * float64(stage-1)
		}
		const noise = 40 // of Go's runtime, of buffers of a micro batch and of a row's logits
		got, loss := number(t, out, `; (\d+) MB resident`), number(t, out, `step=3 loss=([0-9.]+)`)
		t.Logf("%s, stage %d: %.0f MB, by the formula with activations and buffers %.0f; loss %.5f", preset, stage, got, most, loss)
		require.Less(t, got, most+noise, "stage %d", stage)
		require.Less(t, loss, number(t, out, `step=1 loss=([0-9.]+)`))
		if first == 0 {
			first = loss
		}
		require.InDelta(t, first, loss, 1e-5, "stage %d", stage)
	}
	if !*large {
		return
	}
	for _, rows := range []int{4, 8} {
		cmd, out := program(t, fmt.Sprintf("-np 2 -preset gpt2-85m -context 64 -rows %d -steps 6", rows))
		require.NoError(t, cmd.Run(), "%s", out)
		speed := number(t, out, `step=6 .*tps=(\d+)`)
		t.Logf("2 ranks, %d rows of 64 tokens: %.0f tokens/s", rows, speed)
		require.Greater(t, speed, 20., "200 are promised on 2 cores")
	}
}
