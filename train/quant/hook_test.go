package quant_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/quant"
)

// Gradients are averaged in buckets: those that lie side by side, and those that do not; also where each step has others, and
// the same bits are on all ranks.
func TestHook(t *testing.T) {
	const ranks, n = 3, 4000
	for k, most := range []float64{quant.None: 1e-6, quant.BFloat16: .004, quant.Int8: .012, quant.Int4: .17, quant.E4M3: .04, quant.E5M2: .08} {
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			for _, sum := range []bool{false, true} {
				var mem []float32
				cut := func() (bufs []ccl.Buf) {
					mem = make([]float32, 2*n)
					copy(mem, normal(c.Rank(), n))
					copy(mem[n+100:], normal(c.Rank(), n-100))
					return []ccl.Buf{ccl.BufOf(mem[:1500]), ccl.BufOf(mem[1500:n]), ccl.BufOf(mem[n+100:])}
				}
				r, err := ddp.New(t.Context(), c, cut(), &ddp.Options{Hook: quant.Hook(c, quant.Codec(k), nil), Sum: sum, FirstBytes: 4 * n, Bytes: 8 * n})
				require.NoError(t, err)
				for range 3 {
					require.NoError(t, r.Use(cut()))
					require.NoError(t, r.All(t.Context()))
					require.NoError(t, ddp.Same(t.Context(), c, ddp.Hash(mem)))
					want := mean(ranks, n)
					for i := range want {
						if sum {
							want[i] *= ranks
						}
					}
					require.Less(t, off(mem[:n], want), most)
					require.Less(t, off(mem[n+100:], want[:n-100]), most)
				}
				require.NoError(t, r.Use(cut()))
				if c.Rank() == 1 {
					mem[700] = float32(math.NaN())
				}
				require.NoError(t, r.All(t.Context()))
				_, err = r.Norm()
				require.ErrorIs(t, err, ddp.ErrNotFinite)
				require.NoError(t, r.Close())
			}
			bad, err := ddp.New(t.Context(), c, []ccl.Buf{ccl.BufOf(make([]float64, 3))}, &ddp.Options{Hook: quant.Hook(c, quant.Int8, nil)})
			require.NoError(t, err)
			require.ErrorContains(t, bad.All(t.Context()), "quant.Hook is for float32 in host memory, not for double")
			require.NoError(t, bad.Close())
			alone := ccltest.Split(t, c, c.Rank(), 0)
			bad, err = ddp.New(t.Context(), c, []ccl.Buf{ccl.BufOf(make([]float32, 3))}, &ddp.Options{Hook: quant.Hook(alone, quant.Int8, nil)})
			require.NoError(t, err)
			require.ErrorContains(t, bad.All(t.Context()), "quant.Hook: the Comm is not that of the ddp.Reducer, which has 3 ranks")
			require.NoError(t, bad.Close())
		})
	}
}
