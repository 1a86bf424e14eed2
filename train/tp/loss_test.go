package tp_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/tp"
)

// Weights, a divisor, rows that do not count and the losses of the rows are as on one rank.
func TestRowsCrossEntropy(t *testing.T) {
	const rows, vocabulary = 9, 11
	logits := random(2, rows*vocabulary)
	for _, tc := range []struct {
		name    string
		ignored []int // rows
		weights bool
		divisor float64
	}{
		{"plain", nil, false, 0},
		{"ignored", []int{0, 4, 8}, false, 0},
		{"weighted", []int{3}, true, 0},
		{"divided", []int{3}, true, 1000},
		{"none counts", []int{0, 1, 2, 3, 4, 5, 6, 7, 8}, true, 0},
	} {
		targets, o := make([]int32, rows), tp.LossOptions{Divisor: tc.divisor}
		for i := range targets {
			targets[i] = int32(i * 7 % vocabulary)
			if tc.weights {
				o.Weights = append(o.Weights, float64(i%4)/2) // some of 0
			}
		}
		count, loss := tc.divisor, 0.
		losses, d := make([]float64, rows), make([]float64, rows*vocabulary)
		for i := range rows {
			one, grad := entropy(logits[i*vocabulary:(i+1)*vocabulary], targets[i:i+1])
			losses[i] = one
			copy(d[i*vocabulary:], grad)
		}
		for _, i := range tc.ignored {
			targets[i], losses[i] = tp.Ignored, 0
		}
		weight := func(i int) float64 {
			switch {
			case targets[i] == tp.Ignored:
				return 0
			case o.Weights == nil:
				return 1
			}
			return o.Weights[i]
		}
		for i := range rows {
			if tc.divisor == 0 {
				count += weight(i)
			}
		}
		for i := range rows {
			w := 0.
			if count != 0 {
				w = weight(i) / count
			}
			loss += w * losses[i]
			for j := range vocabulary {
				d[i*vocabulary+j] *= w
			}
		}
		for _, n := range []int{1, 2, 3} {
			t.Run(fmt.Sprint(tc.name, "/", n), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					lo, hi := data.Range(vocabulary, c.Rank(), n)
					var part []float64
					for i := range rows {
						part = append(part, logits[i*vocabulary+lo:i*vocabulary+hi]...)
					}
					o := o
					o.Losses = make([]float64, rows)
					got, err := tp.RowsCrossEntropy(t.Context(), &tp.Group{Comm: c}, part, part, targets, lo, o)
					require.NoError(t, err)
					require.InDelta(t, loss, got, 1e-12)
					require.InDeltaSlice(t, losses, o.Losses, 1e-12)
					for i := range rows {
						require.InDeltaSlice(t, d[i*vocabulary+lo:i*vocabulary+hi], part[i*(hi-lo):(i+1)*(hi-lo)], 1e-12, "row %d", i)
					}
				})
			})
		}
	}
}

// Parts that overlap and leave a hole are an error on all ranks, also where a target in two parts and one in none would
// cancel out; and so are targets and weights that are not the same everywhere.
func TestCrossEntropyOfWrongParts(t *testing.T) {
	for _, tc := range []struct {
		name    string
		targets func(rank int) []int32
		first   func(rank int) int
		weights func(rank int) []float64
		text    string
	}{
		{"cancel", func(int) []int32 { return []int32{2, 5} }, func(r int) int { return 2 * r }, nil,
			"tp: CrossEntropy: target 2 of row 0 is in the vocabulary of 2 ranks; each must be in exactly one"},
		{"in none", func(int) []int32 { return []int32{0, 5} }, func(r int) int { return 2 * r }, nil,
			"tp: CrossEntropy: target 5 of row 1 is in the vocabulary of 0 ranks; each must be in exactly one"},
		{"negative", func(int) []int32 { return []int32{0, -1} }, func(r int) int { return 3 * r }, nil,
			"tp: CrossEntropy: target -1 of row 1 is in the vocabulary of 0 ranks; each must be in exactly one"},
		{"other targets", func(r int) []int32 { return []int32{0, int32(3 + r)} }, func(r int) int { return 3 * r }, nil,
			"tp: CrossEntropy: ranks differ in their targets or weights"},
		{"ignored by one", func(r int) []int32 { return []int32{0, int32(tp.Ignored * r)} }, func(r int) int { return 3 * r }, nil,
			"tp: CrossEntropy: ranks differ in their targets or weights"},
		{"other weights", func(int) []int32 { return []int32{0, 3} }, func(r int) int { return 3 * r }, func(r int) []float64 { return []float64{1, float64(r)} },
			"tp: CrossEntropy: ranks differ in their targets or weights"},
		{"too few weights", func(int) []int32 { return []int32{0, 3} }, func(r int) int { return 3 * r }, func(r int) []float64 { return []float64{1} },
			"tp: CrossEntropy: 1 weights and 0 losses for 2 targets"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
				c := ccltest.Split(t, world, 0, world.Rank())
				o := tp.LossOptions{}
				if tc.weights != nil {
					o.Weights = tc.weights(c.Rank())
				}
				x := []float32{1, 2, 3, 1, 2, 3}
				_, err := tp.RowsCrossEntropy(t.Context(), &tp.Group{Comm: c}, x, x, tc.targets(c.Rank()), tc.first(c.Rank()), o)
				require.ErrorContains(t, err, tc.text)
				ccltest.Barrier(t, world)
			}, ccltest.Deadline(20*time.Second))
		})
	}
}

// A call like the one before allocates nothing.
func TestCrossEntropyAllocatesNothing(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		g, x, y, targets := &tp.Group{Comm: c}, make([]float32, 60), make([]float32, 60), []int32{1, 2, 3, tp.Ignored}
		o := tp.LossOptions{Weights: []float64{1, 2, 3, 4}, Losses: make([]float64, 4)}
		require.Zero(t, ccltest.Allocs(t, c, 10, func() {
			_, err := tp.RowsCrossEntropy(t.Context(), g, y, x, targets, 0, o)
			require.NoError(t, err)
		}))
	})
}
