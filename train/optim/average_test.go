package optim_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/optim"
)

// The average follows with half of the distance in each step.
func ExampleEMA() {
	average, p := []float32{0}, []float32{8}
	for range 3 {
		if err := optim.EMA(.5, 0, average, p); err != nil {
			fmt.Println(err)
		}
		fmt.Print(average[0], " ")
	}
	// Output: 4 6 7
}

func TestEMA(t *testing.T) {
	for _, steps := range [][]int{{0, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6}, {1000, 10000, 100000, 1, 2, 3}} {
		a, want := []float64{1, -2, .5}, []float64{1, -2, .5}
		for k, step := range steps {
			decay := .9
			if step > 0 {
				decay = math.Min(decay, float64(1+step)/float64(10+step))
			}
			p := []float64{float64(k), 2, float64(-k * k)}
			for i := range want { // as the sum of what is left of each
				want[i] = want[i] + (1-decay)*(p[i]-want[i])
			}
			require.NoError(t, optim.EMA(.9, step, a, p))
			require.InDeltaSlice(t, want, a, 1e-14)
		}
	}
	require.EqualError(t, optim.EMA(.5, 0, []float32{1}, nil), "optim: EMA of 0 parameters in an average of 1")
	require.EqualError(t, optim.EMA(.5, -1, []float32{1}, []float32{1}), "optim: EMA in step -1; steps are counted from 1, and 0 does not correct")
	for _, decay := range []float64{-.1, 1.1, math.NaN()} {
		require.ErrorContains(t, optim.EMA(decay, 1, []float32{1}, []float32{1}), "it is from 0 to 1")
	}
	a, p := []float32{1}, []float32{3}
	require.NoError(t, optim.EMA(1, 0, a, p))
	require.Equal(t, []float32{1}, a)
	require.NoError(t, optim.EMA(0, 0, a, p))
	require.Equal(t, []float32{3}, a)
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = optim.EMA(.9, 5, a, p) }))
}
