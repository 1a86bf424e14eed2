//go:build xla && cgo && linux

package fit_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/xla/nn"
)

// A token that the model does not know is an error of the call that it is given to: a program would compute something.
func TestTokensOutOfRange(t *testing.T) {
	o := options()
	o.Rows, o.Tokens = 2, 3
	good := []int32{0, 95, 1, 2, 3, 4}
	with(t, 1, func() *nn.Model { return llama(true) }, o, func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
		for _, tc := range []struct {
			tokens, wanted []int32
			want           string
		}{
			{[]int32{0, 1, 2, 3, 4, 96}, good, "fit: row 1 of a batch has the token 96 at 2, and the model knows 96"},
			{[]int32{0, -1, 2, 3, 4, 5}, good, "fit: row 0 of a batch has the token -1 at 1, and the model knows 96"},
			{good, []int32{0, 1, 2, 100, 4, 5}, "fit: row 1 of a batch has the wanted token 100 at 0, and the model knows 96"},
		} {
			_, err := x.Step(t.Context(), 1, 1e-3, []fit.Batch{{Tokens: tc.tokens, Wanted: tc.wanted}})
			require.EqualError(t, err, tc.want)
		}
		_, err := x.Generate(t.Context(), [][]int32{{1}, {2, 96}}, &fit.GenerateOptions{Tokens: 1})
		require.EqualError(t, err, "fit: prompt 1 has the token 96 at 1, and the model knows 96")
	})
}
