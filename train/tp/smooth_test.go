package tp_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/tp"
)

// smoothed is the loss of a row by its definition: the cross entropy with a target that all words have a share of, and
// z times the square of the logarithm of the sum.
func smoothed(row []float64, target int, smoothing, z float64) float64 {
	sum := 0.
	for _, x := range row {
		sum += math.Exp(x)
	}
	lse, loss := math.Log(sum), 0.
	for j, x := range row {
		q := smoothing / float64(len(row))
		if j == target {
			q += 1 - smoothing
		}
		loss -= q * (x - lse)
	}
	return loss + z*lse*lse
}

// Smoothing and Z are what their definitions say, with the gradient that follows, however the vocabulary is split, and
// with padding in it.
func TestSmoothing(t *testing.T) {
	const rows, words, padded = 5, 11, 13
	logits := random(5, rows*words)
	targets := []int32{3, 10, tp.Ignored, 0, 7}
	for _, tc := range []struct{ smoothing, z float64 }{{.1, 0}, {0, .01}, {.3, .2}, {1, 0}} {
		loss, losses, d := 0., make([]float64, rows), make([]float64, rows*words)
		for i, target := range targets {
			if target == tp.Ignored {
				continue
			}
			row := slices.Clone(logits[i*words : (i+1)*words])
			losses[i] = smoothed(row, int(target), tc.smoothing, tc.z)
			loss += losses[i] / 4
			for j := range row { // by differences, whose error is of the order of h squared
				const h = 1e-5
				x := row[j]
				row[j] = x + h
				up := smoothed(row, int(target), tc.smoothing, tc.z)
				row[j] = x - h
				d[i*words+j] = (up - smoothed(row, int(target), tc.smoothing, tc.z)) / (2 * h) / 4
				row[j] = x
			}
		}
		for _, n := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%v/%v/%d", tc.smoothing, tc.z, n), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					lo, hi := data.Range(padded, c.Rank(), n)
					var part, want []float64
					for i := range rows {
						for j := lo; j < hi; j++ {
							if j < words {
								part, want = append(part, logits[i*words+j]), append(want, d[i*words+j])
							} else {
								part, want = append(part, 99), append(want, 0)
							}
						}
					}
					o := tp.LossOptions{Smoothing: tc.smoothing, Z: tc.z, Words: words, Losses: make([]float64, rows)}
					got, err := tp.RowsCrossEntropy(t.Context(), &tp.Group{Comm: c}, part, part, targets, lo, o)
					require.NoError(t, err)
					require.InDelta(t, loss, got, 1e-12)
					require.InDeltaSlice(t, losses, o.Losses, 1e-12)
					require.InDeltaSlice(t, want, part, 1e-9)
				})
			})
		}
	}
}

func TestSmoothingRefused(t *testing.T) {
	for _, o := range []tp.LossOptions{{Smoothing: -.1}, {Smoothing: 1.1}, {Smoothing: math.NaN()}, {Z: -1}, {Z: math.NaN()}} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			_, err := tp.RowsCrossEntropy(t.Context(), &tp.Group{Comm: c}, []float64{1}, []float64{1}, []int32{0}, c.Rank(), o)
			require.EqualError(t, err, fmt.Sprintf("tp: CrossEntropy: Smoothing is %v and Z %v: the one is from 0 to 1, the other not negative",
				o.Smoothing, o.Z))
		})
	}
}

// A row of weight 0 may be anything, and the loss of no rows is 0.
func TestRowOfNoWeight(t *testing.T) {
	for _, odd := range []float64{math.NaN(), math.Inf(-1)} { // the latter has an infinite loss with Smoothing
		for weight, want := range map[float64]float64{0: 0, 1: math.Log(2)} {
			ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
				d := make([]float64, 4)
				loss, err := tp.RowsCrossEntropy(t.Context(), &tp.Group{Comm: c}, d, []float64{0, 0, 0, odd}, []int32{0, 0}, 0,
					tp.LossOptions{Weights: []float64{weight, 0}, Smoothing: .1})
				require.NoError(t, err)
				require.InDelta(t, want, loss, 1e-15)
				require.InDeltaSlice(t, []float64{-.45 * weight, .45 * weight, 0, 0}, d, 1e-15)
			})
		}
	}
}
