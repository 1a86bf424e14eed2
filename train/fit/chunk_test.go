//go:build xla && cgo && linux

package fit_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/optim"
)

// A model whose loss is computed by chunks of tokens trains as without, in both layouts, and has the same score, though tokens that do
// not count are in every chunk. No array of its step has all logits.
func TestChunk(t *testing.T) {
	path := xlatest.Path(t)
	run := func(t testing.TB, c *ccl.Comm, chunk int, units bool) (losses []float64, score fit.Score) {
		ctx, model := t.Context(), own(96, 8, 0)
		model.Chunk = chunk
		m, err := machine.New(ctx, c, &machine.Options{Plugin: path})
		require.NoError(t, err)
		defer m.Close()
		o := &fit.Options{Rows: 2, Tokens: 9, Units: units, Masked: true, Adam: optim.AdamW{Beta1: .9, Beta2: .95, Eps: 1e-8}}
		text, err := fit.Text(model, o)
		require.NoError(t, err)
		for _, all := range []string{"tensor<2x9x96xf32>", "tensor<18x96xf32>"} {
			if chunk == 0 {
				require.Contains(t, text, all)
			} else {
				require.NotContains(t, text, all)
			}
		}
		x, err := fit.New(ctx, m, model, o)
		require.NoError(t, err)
		defer x.Close()
		b := batches(o, 1, 0, 1, false)
		for i := range b[0].Wanted {
			if i%4 == 3 {
				b[0].Wanted[i] = -1
			}
		}
		for n := 1; n <= 3; n++ {
			loss, err := x.Step(ctx, n, 1e-2, b)
			require.NoError(t, err)
			list, err := x.Read(ctx, loss)
			require.NoError(t, err)
			losses = append(losses, list...)
		}
		score, err = x.Eval(ctx, b)
		require.NoError(t, err)
		return losses, score
	}
	for _, units := range []bool{false, true} {
		t.Run(fmt.Sprintf("units %v", units), func(t *testing.T) {
			ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
				losses, score := run(t, c, 0, units)
				by, byScore := run(t, c, 5, units)
				require.InDeltaSlice(t, losses, by, 1e-5)
				require.InDelta(t, score.Loss, byScore.Loss, 1e-5)
				require.Equal(t, score.Accuracy, byScore.Accuracy)
				require.Equal(t, score.Tokens, byScore.Tokens)
				require.Less(t, losses[2], losses[0])
			})
		})
	}
}
