package tp_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/tp"
)

// A vocabulary that does not divide is padded on every number of ranks: the loss and the gradients are those of one rank
// without padding, in whatever the padded weights have become; what is padding gets no gradient, and is never the greatest.
func TestPaddedVocabulary(t *testing.T) {
	const width = 3
	for _, words := range []int{5, 11, 50257} {
		rows := 7
		if words > 100 {
			rows = 2
		}
		x, table := random(3, rows*width), random(4, words*width)
		targets := make([]int32, rows)
		for i := range targets {
			targets[i] = int32((i*7919 + words - 1) % words)
		}
		logits := mul(rows, width, words, x, table, false, true)
		want, dlogits := entropy(logits, targets)
		dtable := mul(words, rows, width, dlogits, x, true, false)
		best := make([]int, rows)
		for i := range best {
			for j := range words {
				if logits[i*words+j] > logits[i*words+best[i]] {
					best[i] = j
				}
			}
		}
		for _, n := range []int{1, 2, 3, 4, 5} {
			for _, unit := range []int{0, 4} {
				if words > 100 && unit > 0 { // long enough as it is
					continue
				}
				t.Run(fmt.Sprint(words, " words/", n, " ranks/units of ", unit), func(t *testing.T) {
					l := tp.Layout{Rows: words, Cols: width, ByRows: true, Pad: true, Unit: unit}
					require.NoError(t, l.Check(n))
					k := l.Share(n)
					require.Zero(t, k%max(unit, 1))
					require.GreaterOrEqual(t, k*n, words)
					require.Less(t, k*n, words+n*max(unit, 1), "less than a unit for each rank")
					parts := make([][]float64, n)
					ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
						first := c.Rank() * k
						mine := shard(t, l, table, c.Rank(), n)
						require.Len(t, mine, k*width)
						for i := max(words-first, 0) * width; i < len(mine); i++ {
							require.Zero(t, mine[i])
							mine[i] = 1e3 // as nothing keeps a program from
						}
						out := mul(rows, width, k, x, mine, false, true)
						d := make([]float64, len(out))
						loss, err := tp.RowsCrossEntropy(t.Context(), &tp.Group{Comm: c}, d, out, targets, first, tp.LossOptions{Words: words})
						require.NoError(t, err)
						require.InDelta(t, want, loss, 1e-12)
						grad := mul(k, rows, width, d, x, true, false)
						for i := max(words-first, 0) * width; i < len(grad); i++ {
							require.Zero(t, grad[i])
						}
						parts[c.Rank()] = grad

						require.NoError(t, tp.Mask(out, k, first, words))
						all := make([]float64, n*len(out))
						require.NoError(t, ccl.AllGather(t.Context(), c, all, out))
						for i := range rows {
							at, most := -1, math.Inf(-1)
							for j := range n * k {
								if v := all[(j/k*rows+i)*k+j%k]; v > most {
									at, most = j, v
								}
							}
							require.Equal(t, best[i], at)
						}
					})
					got, err := tp.Unshard(l, parts)
					require.NoError(t, err)
					require.InDeltaSlice(t, dtable, got, 1e-12)
				})
			}
		}
	}
	for _, bad := range [][4]int{{6, 0, 0, 5}, {6, 4, 0, 5}, {6, 3, -1, 5}, {6, 3, 0, 0}} {
		require.ErrorContains(t, tp.Mask(make([]float32, bad[0]), bad[1], bad[2], bad[3]), "tp: Mask: 6 logits")
	}
}

// Ranks that differ in where the padding begins are told so, and targets in the padding are in no vocabulary.
func TestWrongWords(t *testing.T) {
	for text, words := range map[string]func(rank int) int{
		"ranks differ in their targets or weights":                                                         func(rank int) int { return 4 + rank },
		"tp: CrossEntropy: target 3 of row 1 is in the vocabulary of 0 ranks; each must be in exactly one": func(int) int { return 3 },
		"tp: CrossEntropy: a vocabulary of -1 words":                                                       func(int) int { return -1 },
	} {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c, x := ccltest.Split(t, world, 0, world.Rank()), make([]float32, 6)
			_, err := tp.RowsCrossEntropy(t.Context(), &tp.Group{Comm: c}, x, x, []int32{0, 3}, 3*c.Rank(), tp.LossOptions{Words: words(c.Rank())})
			require.ErrorContains(t, err, text)
			ccltest.Barrier(t, world)
		})
	}
}
