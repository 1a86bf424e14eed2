package sample_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/fit/sample"
)

// Tokens come as often as their probabilities say, of those that are left.
func TestToken(t *testing.T) {
	logits := []float32{float32(math.Log(.1)), float32(math.Log(.5)), float32(math.Inf(-1)), float32(math.Log(.3)), float32(math.Log(.1))}
	for _, tc := range []struct {
		name string
		o    sample.Options
		want []float64
	}{
		{"all", sample.Options{Temperature: 1}, []float64{.1, .5, 0, .3, .1}},
		{"half the temperature", sample.Options{Temperature: .5}, []float64{.01 / .36, .25 / .36, 0, .09 / .36, .01 / .36}},
		{"top 2", sample.Options{Temperature: 1, TopK: 2}, []float64{0, .5 / .8, 0, .3 / .8, 0}},
		{"top 3 of equals", sample.Options{Temperature: 1, TopK: 3}, []float64{.1, .5, 0, .3, .1}},
		{"top-p .6", sample.Options{Temperature: 1, TopP: .6}, []float64{0, .5 / .8, 0, .3 / .8, 0}},
		{"top-p .3", sample.Options{Temperature: 1, TopP: .3}, []float64{0, 1, 0, 0, 0}},
		{"greedy", sample.Options{}, []float64{0, 1, 0, 0, 0}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.NoError(t, tc.o.Check())
			const n = 20000
			rnd, got := rand.New(rand.NewPCG(1, 2)), make([]float64, len(logits))
			for range n {
				got[tc.o.Token(logits, rnd)] += 1. / n
			}
			require.InDeltaSlice(t, tc.want, got, .015)
			for i, p := range tc.want {
				require.Equal(t, p == 0, got[i] == 0)
			}
		})
	}
}

func TestLikeliest(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tc := range []struct {
		o      sample.Options
		logits []float32
		want   int
	}{
		{sample.Options{Temperature: 1}, []float32{0, inf, 1}, 1},
		{sample.Options{Temperature: 5e-324}, []float32{0, 3, 1}, 1},
		{sample.Options{Temperature: 1e-310, TopK: 2}, []float32{-3, -2, -1}, 2},
		{sample.Options{Temperature: 1, TopP: 5e-324}, []float32{0, 3, 1}, 1},
		{sample.Options{Temperature: 1e308, TopK: 1}, []float32{0, 3, 1}, 1},
		{sample.Options{Temperature: 1, TopK: 1 << 40, TopP: .1}, []float32{0, 3, 1}, 1},
	} {
		for seed := range uint64(20) {
			require.Equal(t, tc.want, tc.o.Token(tc.logits, rand.New(rand.NewPCG(seed, 1))), tc)
		}
	}
	require.Equal(t, 2, sample.Likeliest([]float32{nan, 1, 2, 2, nan}))
	require.Equal(t, 1, sample.Options{Temperature: 1}.Token([]float32{nan, 3}, rand.New(rand.NewPCG(1, 1))))
	for _, o := range []sample.Options{{Temperature: -1}, {TopK: -1}, {TopP: 1.1}, {Temperature: math.NaN()}} {
		require.ErrorContains(t, o.Check(), "sample: temperature ")
	}
}
