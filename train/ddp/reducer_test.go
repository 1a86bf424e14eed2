package ddp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ddp"
)

// gradients makes memory for gradients of these lengths, and Bufs of it: side by side in memory, or each for itself.
func gradients(side bool, lens ...int) (gs [][]float32, bufs []ccl.Buf) {
	total := 0
	for _, n := range lens {
		total += n
	}
	all := make([]float32, total)
	for _, n := range lens {
		g := all[:n]
		if all = all[n:]; !side {
			g = make([]float32, n)
		}
		gs, bufs = append(gs, g), append(bufs, ccl.BufOf(g))
	}
	return gs, bufs
}

func newReducer(t testing.TB, c *ccl.Comm, grads []ccl.Buf, o *ddp.Options) *ddp.Reducer {
	r, err := ddp.New(t.Context(), c, grads, o)
	require.NoError(t, err)
	return r
}
