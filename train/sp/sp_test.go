package sp_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/sp"
)

const seq, dim = 48, 8 // one head; 48 divides by 2*4 and 2*3

var invRoot = 1 / math.Sqrt(dim)

func dot(q, k []float32) float64 {
	s := 0.
	for d := range dim {
		s += float64(q[d]) * float64(k[d])
	}
	return s * invRoot
}

// scores of queries at positions pos for a block of keys at positions of.
func scores(q, kv []float32, pos, of []int) []float32 {
	s := make([]float32, len(pos)*len(of))
	for i, at := range pos {
		for j, key := range of {
			s[i*len(of)+j] = float32(math.Inf(-1))
			if key <= at {
				s[i*len(of)+j] = float32(dot(q[i*dim:], kv[j*2*dim:]))
			}
		}
	}
	return s
}

// weigh adds a block of keys and values to the result of queries, of whose scores it makes weights.
func weigh(soft *sp.Softmax, out, s, kv []float32) {
	rows, keys := len(out)/dim, len(kv)/(2*dim)
	soft.Add(s, keys, out, dim)
	for i := range rows {
		for j := range keys {
			for d := range dim {
				out[i*dim+d] += s[i*keys+j] * kv[(j*2+1)*dim+d]
			}
		}
	}
}

// unweigh adds what a block has to the gradients of queries and of its keys and values.
func unweigh(soft *sp.Softmax, s, q, kv, out, dout, dq, dkv []float32) {
	rows, keys := len(out)/dim, len(kv)/(2*dim)
	soft.Weights(s, keys)
	for i := range rows {
		delta := float32(0)
		for d := range dim {
			delta += out[i*dim+d] * dout[i*dim+d]
		}
		for j := range keys {
			w, dw := s[i*keys+j], float32(0)
			for d := range dim {
				dw += dout[i*dim+d] * kv[(j*2+1)*dim+d]
				dkv[(j*2+1)*dim+d] += w * dout[i*dim+d]
			}
			ds := w * (dw - delta) * float32(invRoot)
			for d := range dim {
				dq[i*dim+d] += ds * kv[j*2*dim+d]
				dkv[j*2*dim+d] += ds * q[i*dim+d]
			}
		}
	}
}

// take is rows of a part of the sequence.
func take[T any](x []T, width int, pos []int) (out []T) {
	for _, i := range pos {
		out = append(out, x[i*width:(i+1)*width]...)
	}
	return out
}

func near(t testing.TB, want []float64, got []float32, what string) {
	require.Len(t, got, len(want))
	for i := range want {
		require.InDelta(t, want[i], got[i], 1e-6, "%s, element %d", what, i)
	}
}

// Ring attention over zigzag and over contiguous parts has the values and gradients of full causal attention.
func TestRing(t *testing.T) {
	p := newLayer(seq, 1, 1)
	out, dq, dkv := p.full()
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}, {ccltest.Hosts(2)}} {
		for _, n := range []int{1, 2, 3, 4} {
			if opts != nil && n == 1 {
				continue
			}
			for _, zigzag := range []bool{false, true} {
				parts := make([][]int, n)
				for r := range n {
					z := [2][2]int{{r * seq / n, (r + 1) * seq / n}}
					if zigzag {
						var err error
						z, err = sp.Zigzag(seq, r, n)
						require.NoError(t, err)
					}
					for _, part := range z {
						for i := part[0]; i < part[1]; i++ {
							parts[r] = append(parts[r], i)
						}
					}
				}
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					pos := parts[c.Rank()]
					rows := len(pos)
					q, kv, dout := take(p.q, dim, pos), take(p.kv, 2*dim, pos), take(p.dout, dim, pos)
					soft, o := sp.NewSoftmax(rows), make([]float32, rows*dim)
					r := sp.NewRing(c, kv)
					turns := 0
					for r.Next(t.Context()) {
						of := parts[r.From()]
						weigh(soft, o, scores(q, r.Block(), pos, of), r.Block())
						turns++
					}
					require.NoError(t, r.Err())
					require.Equal(t, n, turns)
					require.False(t, r.Next(t.Context()))
					soft.Finish(o, dim)
					near(t, take(out, dim, pos), o, "out")

					myDQ, myDKV := make([]float32, rows*dim), make([]float32, rows*2*dim)
					b := sp.NewGradRing(c, kv, myDKV)
					for b.Next(t.Context()) {
						of := parts[b.From()]
						if !zigzag && of[0] > pos[rows-1] {
							continue // all is masked: nothing to add
						}
						g := make([]float32, len(b.Block()))
						unweigh(soft, scores(q, b.Block(), pos, of), q, b.Block(), o, dout, myDQ, g)
						b.Add(t.Context(), g)
					}
					require.NoError(t, b.Home(t.Context()))
					near(t, take(dq, dim, pos), myDQ, "dq")
					near(t, take(dkv, 2*dim, pos), myDKV, "dkv")
				}, opts...)
			}
		}
	}
}

func TestUlysses(t *testing.T) {
	s := sp.Shape{Seq: 24, Heads: 12, Dim: 5}
	for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}, {ccltest.Hosts(2)}} {
		for _, n := range []int{2, 3, 4, 6} {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				k := s.Seq / n * s.Heads * s.Dim
				src, dst, scratch, back := make([]float32, k), make([]float32, k), make([]float32, k), make([]float32, k)
				for i := range src {
					src[i] = float32(c.Rank()*k + i)
				}
				require.NoError(t, sp.ToHeads(t.Context(), c, s, dst, src, scratch))
				h := s.Heads / n
				for i := range s.Seq {
					for x := range h * s.Dim {
						require.Equal(t, float32((i*s.Heads+c.Rank()*h)*s.Dim+x), dst[i*h*s.Dim+x])
					}
				}
				require.NoError(t, sp.ToSequence(t.Context(), c, s, back, dst, scratch))
				require.Equal(t, src, back)
			}, opts...)
		}
	}
}

// Lengths that are wrong on one rank end the call on all, with that rank's reason.
func TestWrongOnOneRank(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		for name, call := range map[string]func(c *ccl.Comm, x []float32) error{
			"ToHeads": func(c *ccl.Comm, x []float32) error {
				return sp.ToHeads(ctx, c, sp.Shape{3, 3, 4}, make([]float32, 12), x, make([]float32, 12))
			},
			"ToSequence": func(c *ccl.Comm, x []float32) error {
				return sp.ToSequence(ctx, c, sp.Shape{3, 3, 4}, x, make([]float32, 12), make([]float32, 12))
			},
			"NewGradRing": func(c *ccl.Comm, x []float32) error {
				r := sp.NewGradRing(c, make([]float32, 12), x)
				for r.Next(ctx) {
					r.Add(ctx, r.Block())
				}
				return r.Home(ctx)
			},
		} {
			x := make([]float32, 12)
			if world.Rank() == 1 {
				x = x[:11]
			}
			err := call(ccltest.Split(t, world, 0, 0), x)
			require.ErrorContains(t, err, "11", name)
			require.ErrorContains(t, err, "12", name)
			if world.Rank() != 1 {
				require.ErrorIs(t, err, ccl.ErrAborted, name)
			}
			require.NoError(t, ccl.Barrier(ctx, world))
		}
	})
}

func TestErrors(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		x := make([]float32, 12)
		for _, tc := range []struct {
			s    sp.Shape
			want string
		}{
			{sp.Shape{Seq: 2, Heads: 3, Dim: 1}, "sp: 3 heads do not divide among 2 ranks; use a Ring, which does not split heads"},
			{sp.Shape{Seq: 2, Heads: 2, Dim: 5}, "sp: dst has 12 elements, src 12 and scratch 12; the part of a rank of 2 has 10"},
			{sp.Shape{Seq: -2, Heads: 2, Dim: 5}, "sp: a shape of -2 tokens, 2 heads and 5 elements"},
		} {
			part := ccltest.Split(t, c, 0, 0)
			require.EqualError(t, sp.ToHeads(t.Context(), part, tc.s, x, x, x), tc.want)
			require.EqualError(t, sp.ToSequence(t.Context(), part, tc.s, x, x, x), tc.want)
		}
		require.EqualError(t, sp.ToHeads(t.Context(), nil, sp.Shape{Seq: 2, Heads: 2}, x, x, x), "sp: the Comm is nil")
		for _, lo := range []int{0, 2, 4} { // of scratch in memory whose elements 2 to 5 are src
			part, y, z := ccltest.Split(t, c, 0, 0), make([]float32, 8), make([]float32, 4)
			s := sp.Shape{Seq: 2, Heads: 2, Dim: 2}
			require.EqualError(t, sp.ToHeads(t.Context(), part, s, z, y[2:6], y[lo:lo+4]), "sp: scratch overlaps dst or src")
			require.EqualError(t, sp.ToSequence(t.Context(), ccltest.Split(t, c, 0, 0), s, y[2:6], z, y[lo:lo+4]), "sp: scratch overlaps dst or src")
		}
		for _, r := range []*sp.Ring[float32]{sp.NewRing[float32](nil, x), sp.NewGradRing(nil, x, x)} {
			require.False(t, r.Next(t.Context()))
			require.Zero(t, r.From())
			require.EqualError(t, r.Err(), "sp: the Comm is nil")
		}
		require.EqualError(t, sp.NewGradRing(nil, x, x).Home(t.Context()), "sp: the Comm is nil")
		r := sp.NewGradRing(ccltest.Split(t, c, 0, 0), x, x[:3])
		require.False(t, r.Next(t.Context()))
		require.EqualError(t, r.Home(t.Context()), "sp: a gradient of 3 elements for a block of 12")
		require.EqualError(t, sp.NewGradRing(c, x, x).Home(t.Context()), "sp: call Home after Next has returned false")
		require.EqualError(t, sp.NewRing(c, x).Home(t.Context()), "sp: Home of a Ring without gradients; NewGradRing makes one with")
		ccltest.Barrier(t, c)
	})
	for _, bad := range [][3]int{{-8, 0, 2}, {8, 0, math.MaxInt}, {8, 2, 2}, {8, -1, 2}, {8, 0, 0}} {
		_, err := sp.Zigzag(bad[0], bad[1], bad[2])
		require.ErrorContains(t, err, "sp: Zigzag: ")
	}
	z, err := sp.Zigzag(16, 1, 2)
	require.NoError(t, err)
	require.Equal(t, [2][2]int{{4, 8}, {8, 12}}, z)
}

// A wrong Add ends the Ring of all ranks that it keeps from their gradients, and a Comm that fails that of this one. At
// the first block of rank 1 it keeps all.
func TestRingFails(t *testing.T) {
	for _, wrong := range []func(t testing.TB, r *sp.Ring[float32], c *ccl.Comm){
		func(t testing.TB, r *sp.Ring[float32], c *ccl.Comm) { r.Add(t.Context(), make([]float32, 3)) },
		func(t testing.TB, r *sp.Ring[float32], c *ccl.Comm) { r.Add(t.Context(), nil); r.Add(t.Context(), nil) },
		func(t testing.TB, r *sp.Ring[float32], c *ccl.Comm) { c.Abort(errors.New("a test")) },
	} {
		ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
			c := ccltest.Split(t, world, 0, 0)
			x := make([]float32, 5)
			r := sp.NewGradRing(c, x, make([]float32, 5))
			for r.Next(t.Context()) {
				if c.Rank() == 1 && r.From() == 1 {
					wrong(t, r, c)
				}
			}
			require.ErrorContains(t, r.Home(t.Context()), "sp: ")
			require.Equal(t, r.Err(), r.Home(t.Context()))
			ccltest.Barrier(t, world)
		})
	}
}

// Rows that see no key, and blocks in any order.
func TestSoftmax(t *testing.T) {
	inf := float32(math.Inf(-1))
	s, out := sp.NewSoftmax(2), make([]float32, 2)
	for _, block := range [][3]float32{{inf, inf, 7}, {100, inf, 0}, {102, inf, 2}, {101, inf, 1}} { // two scores, a value
		w := []float32{block[0], block[1]}
		s.Add(w, 1, out, 1)
		for i := range out {
			out[i] += w[i] * block[2]
		}
	}
	s.Finish(out, 1)
	e := math.E
	require.InDelta(t, (2*e*e+e)/(1+e+e*e), out[0], 1e-6)
	require.Zero(t, out[1])
	w := []float32{101, 5}
	s.Weights(w, 1)
	require.InDelta(t, e/(1+e+e*e), w[0], 1e-6)
	require.Zero(t, w[1])
}

// The parts of a zigzag are each token once, and the causal work of two ranks differs by less than what three tokens take.
func TestZigzagOfAnyLength(t *testing.T) {
	for _, n := range []int{0, 1, 7, 16, 47, 1000} {
		for _, size := range []int{1, 2, 3, 5} {
			seen, work := make([]int, n), make([]int, size)
			for r := range size {
				z, err := sp.Zigzag(n, r, size)
				require.NoError(t, err)
				for _, part := range z {
					for i := part[0]; i < part[1]; i++ {
						seen[i]++
						work[r] += i + 1
					}
				}
			}
			for i, k := range seen {
				require.Equal(t, 1, k, "token %d of %d on %d ranks", i, n, size)
			}
			require.LessOrEqual(t, slices.Max(work)-slices.Min(work), 3*n, "%d tokens on %d ranks", n, size)
		}
	}
}

// Lengths of blocks that are not those of the blocks end the ring of all ranks, with the reason.
func TestWrongLengths(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
		for i, want := range []string{"sp: the block of rank 1 has 5 elements, and not the 4 of lens", "sp: blocks of [5 5] elements for 3 ranks",
			"sp: blocks of [5 5 -1] elements for 3 ranks"} {
			c, x, lens := ccltest.Split(t, world, 0, 0), make([]float32, 5), [][]int{{5, 4, 5}, {5, 5}, {5, 5, -1}}[i]
			if c.Rank() != 1 {
				lens = []int{5, 5, 5}
			}
			r := sp.NewGradRingOf(c, x, make([]float32, 5), lens)
			for r.Next(t.Context()) {
				r.Add(t.Context(), r.Block())
			}
			require.ErrorContains(t, r.Home(t.Context()), want)
			ccltest.Barrier(t, world)
		}
	})
}
