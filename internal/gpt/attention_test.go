package gpt_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpt"
)

// attention is that of one head of one sequence as its definition says: rows of size are in q, k and v, and the gradient
// of the result in dy.
func attention(ctx, size int, q, k, v, dy []float64) (y, dq, dk, dv []float64) {
	y, dq, dk, dv = make([]float64, ctx*size), make([]float64, ctx*size), make([]float64, ctx*size), make([]float64, ctx*size)
	dot := func(a, b []float64, i, j int) (sum float64) {
		for e := range size {
			sum += a[i*size+e] * b[j*size+e]
		}
		return sum
	}
	scale := 1 / math.Sqrt(float64(size))
	for t := range ctx {
		p, dp := make([]float64, t+1), make([]float64, t+1)
		sum, mean := 0., 0.
		for u := range p {
			p[u] = math.Exp(dot(q, k, t, u) * scale)
			sum += p[u]
		}
		for u := range p {
			p[u] /= sum
			dp[u] = dot(dy, v, t, u)
			mean += p[u] * dp[u]
		}
		for u := range p {
			ds := p[u] * (dp[u] - mean) * scale
			for e := range size {
				y[t*size+e] += p[u] * v[u*size+e]
				dv[u*size+e] += p[u] * dy[t*size+e]
				dq[t*size+e] += ds * k[u*size+e]
				dk[u*size+e] += ds * q[t*size+e]
			}
		}
	}
	return y, dq, dk, dv
}

// Attend and AttendBack are the definition, for contexts around whole bands, whatever lies in the memory of the weights.
func TestAttend(t *testing.T) {
	const rows, heads, size = 2, 2, 3
	const width = heads * size
	for _, ctx := range []int{1, 5, 16, 63, 64, 65, 128, 150, 200} {
		t.Run(fmt.Sprint(ctx), func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(ctx), 1))
			random := func(n int) []float64 {
				x := make([]float64, n)
				for i := range x {
					x[i] = r.NormFloat64()
				}
				return x
			}
			n := gpt.NewNet[float64](gpt.Config{Vocab: 5, Context: ctx, Width: width, Heads: heads, Layers: 1}, rows, nil)
			qkv, dy := random(rows*ctx*3*width), random(rows*ctx*width)
			y, dqkv, att := random(rows*ctx*width), random(rows*ctx*3*width), random(rows*heads*ctx*ctx)
			n.Attend(qkv, y, att, heads)
			n.AttendBack(qkv, att, dy, dqkv, heads)
			for s := range rows {
				for h := range heads {
					column := func(x []float64, stride, off int) (out []float64) {
						for i := range ctx {
							at := (s*ctx+i)*stride + off + h*size
							out = append(out, x[at:at+size]...)
						}
						return out
					}
					want, dq, dk, dv := attention(ctx, size, column(qkv, 3*width, 0), column(qkv, 3*width, width), column(qkv, 3*width, 2*width),
						column(dy, width, 0))
					require.InDeltaSlice(t, want, column(y, width, 0), 1e-12)
					require.InDeltaSlice(t, dq, column(dqkv, 3*width, 0), 1e-12)
					require.InDeltaSlice(t, dk, column(dqkv, 3*width, width), 1e-12)
					require.InDeltaSlice(t, dv, column(dqkv, 3*width, 2*width), 1e-12)
				}
			}
		})
	}
}
