package tp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/tp"
)

// slopes are the derivatives of f at w, by differences.
func slopes(w []float64, f func(w []float64) float64) []float64 {
	const h = 1e-5
	out := make([]float64, len(w))
	for i := range w {
		x := w[i]
		w[i] = x + h
		up := f(w)
		w[i] = x - h
		out[i] = (up - f(w)) / (2 * h)
		w[i] = x
	}
	return out
}

// sharing are the ranks of c that have the same units.
func sharing(t testing.TB, c *ccl.Comm, l tp.Layout) *ccl.Comm {
	k := l.Replicas(c.Size())
	require.Positive(t, k)
	return ccltest.Split(t, c, c.Rank()/k, c.Rank())
}

// Attention with more ranks than heads of keys and values has the output, and the gradient of its fused matrix, of one rank: that is
// by differences of the whole layer, and each rank's by differences of its own part. The matrix is split by columns, and by rows.
func TestMoreRanksThanKeys(t *testing.T) {
	const tokens, width, heads, dim = 4, 5, 8, 2
	for _, kv := range []int{1, 2, 4} {
		fused := (heads + 2*kv) * dim
		x, w, o, dy := random(5, tokens*width), random(6, width*fused), random(7, heads*dim*width), random(8, tokens*width)
		// layer is the loss, whose gradient for the output is dy, of heads with so many of keys.
		layer := func(w, o []float64, heads, kv int, byRows bool) ([]float64, float64) {
			y := mul(tokens, width, (heads+2*kv)*dim, x, w, false, byRows)
			y = mul(tokens, heads*dim, width, attend(y, tokens, heads, kv, dim), o, false, false)
			sum := 0.
			for i := range y {
				sum += y[i] * dy[i]
			}
			return y, sum
		}
		want, _ := layer(w, o, heads, kv, false)
		grad := slopes(append([]float64(nil), w...), func(w []float64) float64 { _, sum := layer(w, o, heads, kv, false); return sum })
		for _, n := range []int{1, 2, 4, 8} {
			for _, byRows := range []bool{false, true} {
				in := tp.Layout{Rows: width, Cols: fused, Parts: []int{heads * dim, kv * dim, kv * dim}, Unit: dim, Replicate: true}
				whole, wholeGrad := w, grad
				if byRows {
					in.Rows, in.Cols, in.ByRows = fused, width, true
					whole, wholeGrad = transposed(w, width, fused), transposed(grad, width, fused)
				}
				out := tp.Layout{Rows: heads * dim, Cols: width, Unit: dim, ByRows: true}
				require.NoError(t, in.Check(n))
				require.Equal(t, max(1, n/kv), in.Replicas(n))
				parts := make([][]float64, n)
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					g := &tp.Group{Comm: c}
					mine := shard(t, in, whole, c.Rank(), n)
					below := shard(t, out, o, c.Rank(), n)
					keys := max(1, kv/n) // heads of keys here
					y, _ := layer(mine, below, heads/n, keys, byRows)
					y, err := tp.Leave(t.Context(), g, nil, y)
					require.NoError(t, err)
					require.InDeltaSlice(t, want, y, 1e-12)

					d := slopes(append([]float64(nil), mine...), func(w []float64) float64 {
						_, sum := layer(w, below, heads/n, keys, byRows)
						return sum
					})
					require.NoError(t, tp.SumReplicas(t.Context(), g, sharing(t, c, in), in, d))
					wanted := shard(t, in, wholeGrad, c.Rank(), n)
					require.InDeltaSlice(t, wanted, d, 1e-6)
					parts[c.Rank()] = d
				})
				// What several ranks have is alike to the bit: Unshard of the ranks in another order is the same.
				got, err := tp.Unshard(in, parts)
				require.NoError(t, err)
				for r := range parts {
					again := shard(t, in, got, r, n)
					require.Equal(t, again, parts[r])
				}
			}
		}
	}
}

// transposed is w, of so many rows and columns, the other way round.
func transposed(w []float64, rows, cols int) []float64 {
	out := make([]float64, len(w))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = w[i*cols+j]
		}
	}
	return out
}

// What is wrong with a call on one rank is told on all, whatever Comm they wait in, and nobody waits.
func TestSumReplicasRefuses(t *testing.T) {
	l := tp.Layout{Rows: 1, Cols: 2, Unit: 1, Replicate: true}
	for text, call := range map[string]func(g *tp.Group, same *ccl.Comm) error{
		"tp: SumReplicas: 2 gradients of a part of 1 elements": func(g *tp.Group, same *ccl.Comm) error {
			return tp.SumReplicas(context.Background(), g, same, l, make([]float32, 2))
		},
		"tp: SumReplicas: units are on 2 ranks each, and there is no Comm of these": func(g *tp.Group, same *ccl.Comm) error {
			err := tp.SumReplicas(context.Background(), g, nil, l, make([]float32, 1))
			same.Abort(err)
			return err
		},
		"tp: SumReplicas: rank 1 shares units with ranks 0 to 1, and is rank 1 of 4 of the Comm given": func(g *tp.Group, same *ccl.Comm) error {
			err := tp.SumReplicas(context.Background(), g, g.Comm, l, make([]float32, 1))
			same.Abort(err)
			return err
		},
		"tp: 3 columns in units of 1 do not divide among 4 ranks": func(g *tp.Group, same *ccl.Comm) error {
			return tp.SumReplicas(context.Background(), g, same, tp.Layout{Rows: 1, Cols: 3, Replicate: true}, make([]float32, 1))
		},
	} {
		ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, world.Rank())
			same := sharing(t, c, l)
			g := &tp.Group{Comm: c}
			if c.Rank() == 1 {
				require.EqualError(t, call(g, same), text)
			} else if c.Rank() == 0 { // which shares with rank 1
				require.ErrorContains(t, tp.SumReplicas(t.Context(), g, same, l, make([]float32, 1)), text)
			} else {
				require.ErrorContains(t, ccl.Barrier(t.Context(), c), text)
			}
			ccltest.Barrier(t, world)
		})
	}
	require.ErrorContains(t, tp.SumReplicas[float32](t.Context(), nil, nil, l, nil), "the Group is nil")
}

func TestSumReplicasAllocatesNothing(t *testing.T) {
	l := tp.Layout{Rows: 4, Cols: 8, Parts: []int{4, 2, 2}, Replicate: true}
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		g, same := &tp.Group{Comm: c}, sharing(t, c, l)
		d, ctx := make([]float32, 4*l.Share(4)), t.Context()
		require.Zero(t, ccltest.Allocs(t, c, 20, func() { require.NoError(t, tp.SumReplicas(ctx, g, same, l, d)) }))
	}, ccltest.Processes(4))
}

// Two heads of keys on four ranks: ranks 0 and 1 have one, ranks 2 and 3 the other, and each the gradient of its own query alone.
func ExampleSumReplicas() {
	ctx := context.Background()
	qkv := []float32{10, 11, 12, 13, 20, 21, 30, 31} // one row, with heads of one element
	l := tp.Layout{Rows: 1, Cols: 8, Parts: []int{4, 2, 2}, Replicate: true}
	ccltest.Example(4, func(c *ccl.Comm) error {
		mine, err := tp.Shard(l, qkv, c.Rank(), c.Size())
		if err != nil {
			return err
		}
		k := l.Replicas(c.Size())
		same, err := c.Split(ctx, c.Rank()/k, c.Rank())
		if err != nil {
			return err
		}
		defer same.Close()
		d := []float32{1, float32(c.Rank()), 100} // of the query, the key and the value
		err = tp.SumReplicas(ctx, &tp.Group{Comm: c}, same, l, d)
		if c.Rank() == 2 {
			fmt.Println(mine, d)
		}
		return err
	})
	// Output: [12 21 31] [1 5 200]
}
