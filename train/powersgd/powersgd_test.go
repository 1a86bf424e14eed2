package powersgd_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/powersgd"
)

// model is gradients of a rank: two matrices and a vector beside them in memory, and a matrix that is too small.
type model struct {
	all      []float32
	matrices []powersgd.Matrix
	bufs     []ccl.Buf
}

func newModel() *model {
	shapes := [][2]int{{20, 30}, {1, 7}, {40, 10}, {2, 2}}
	m := &model{all: make([]float32, 20*30+7+40*10+4)}
	at := 0
	for _, s := range shapes {
		g := m.all[at : at+s[0]*s[1] : at+s[0]*s[1]]
		at += len(g)
		m.bufs = append(m.bufs, ccl.BufOf(g))
		if s[0] > 1 {
			m.matrices = append(m.matrices, powersgd.Matrix{Grad: g, Rows: s[0], Cols: s[1]})
		}
	}
	return m
}

// step has the gradients of a rank averaged, whose elements f gives.
func (m *model) step(t testing.TB, r *ddp.Reducer, f func(i int) float32) {
	for i := range m.all {
		m.all[i] = f(i)
	}
	require.NoError(t, r.All(t.Context()))
}

func newReducer(t testing.TB, c *ccl.Comm, m *model, o powersgd.Options, sum bool) (*powersgd.Compressor, *ddp.Reducer) {
	o.Matrices = m.matrices
	p, err := powersgd.New(o)
	require.NoError(t, err)
	r, err := ddp.New(t.Context(), c, m.bufs, &ddp.Options{Hook: p.Hook, Sum: sum, FirstBytes: 1500})
	require.NoError(t, err)
	return p, r
}

// random numbers of a rank and a step, and the mean over ranks.
func random(rank, step, n int) []float32 {
	r := rand.New(rand.NewPCG(uint64(rank), uint64(step)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

func mean(ranks, step, n int) []float32 {
	x := make([]float32, n)
	for r := range ranks {
		for i, y := range random(r, step, n) {
			x[i] += y / float32(ranks)
		}
	}
	return x
}

// Nor would anybody know of matrices that a Use has left behind.
func TestMatrixLeftBehind(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel()
		_, r := newReducer(t, c, m, powersgd.Options{}, false)
		for range 2 {
			require.NoError(t, r.All(t.Context()))
		}
		require.NoError(t, r.Use(newModel().bufs))
		require.NoError(t, r.All(t.Context()))
		require.ErrorContains(t, r.All(t.Context()), "powersgd: matrix 0 is none of the gradients of the Reducer")
	})
}

// A matrix whose memory is no gradient's would be averaged as it is, and nobody would know.
func TestMatrixElsewhere(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel()
		m.matrices[1].Grad = make([]float32, len(m.matrices[1].Grad))
		_, r := newReducer(t, c, m, powersgd.Options{}, false)
		require.NoError(t, r.All(t.Context()))
		require.ErrorContains(t, r.All(t.Context()), "powersgd: matrix 1 is none of the gradients of the Reducer")
	})
}

// same fails where what is averaged differs between ranks in a bit.
func same(t testing.TB, c *ccl.Comm, x []float32) {
	all := make([]float32, len(x)*c.Size())
	require.NoError(t, ccl.AllGather(t.Context(), c, all, x))
	for r := range c.Size() {
		require.Equal(t, x, all[r*len(x):(r+1)*len(x)])
	}
}

// With as many columns as a matrix has, nothing is lost; vectors and small matrices are averaged as they are; Start steps
// are, too; and a Sum is a sum.
func TestExact(t *testing.T) {
	for _, sum := range []bool{false, true} {
		ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
			m := newModel()
			_, r := newReducer(t, c, m, powersgd.Options{Rank: 40, Rate: 1e-3, Start: 1}, sum)
			defer r.Close()
			for step := range 4 {
				mine := random(c.Rank(), step, len(m.all))
				m.step(t, r, func(i int) float32 { return mine[i] })
				for i, want := range mean(3, step, len(m.all)) {
					if sum {
						want *= 3
					}
					require.InDelta(t, want, m.all[i], 3e-5, "step %d, element %d", step, i)
				}
				same(t, c, m.all)
			}
		})
	}
}

// A matrix that is a product of two vectors is exact with one column, whatever the factors begin with.
func TestOuterProduct(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel()
		p, r := newReducer(t, c, m, powersgd.Options{Seed: 7}, false)
		defer r.Close()
		value := func(i, scale int) float32 { // of the first matrix
			if i < 600 {
				return float32(scale) * float32(i/30-9) * float32(i%30+1) / 100
			}
			return float32(scale)
		}
		for range 3 {
			m.step(t, r, func(i int) float32 { return value(i, c.Rank()+1) })
			for i := range 607 {
				require.InDelta(t, value(i, 3)/2, m.all[i], 1e-4)
			}
		}
		require.Equal(t, 3, p.Step)
		for i, e := range p.Errors()[0] { // how far a rank's own were from the mean, of three steps
			require.InDelta(t, 3*float32(2*c.Rank()-1)*value(i, 1)/2, e, 1e-3)
		}
	})
}

// Columns beyond a matrix's rank are no rounding of the others, which would come into the mean, and are there again once
// there is more to send; and a gradient is sent however small it is.
func TestFewerColumnsThanFactors(t *testing.T) {
	const rows, cols = 50, 40
	for _, size := range []float64{1, 1e-6, 1e-12, 1e-30} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			g := make([]float32, rows*cols)
			p, err := powersgd.New(powersgd.Options{Matrices: []powersgd.Matrix{{Grad: g, Rows: rows, Cols: cols}}, Rank: 4})
			require.NoError(t, err)
			r, err := ddp.New(t.Context(), c, []ccl.Buf{ccl.BufOf(g)}, &ddp.Options{Hook: p.Hook})
			require.NoError(t, err)
			for step, products := range []int{1, 1, 4, 2} { // of two vectors, the same on all ranks
				x := rand.New(rand.NewPCG(1, uint64(step)))
				clear(g)
				for range products {
					u, v := random(step, x.IntN(1000), rows), random(step, x.IntN(1000), cols)
					for i := range g {
						g[i] += float32(size * float64(u[i/cols]*v[i%cols]))
					}
				}
				want := slices.Clone(g)
				require.NoError(t, r.All(t.Context()))
				require.InDeltaSlice(t, want, g, 1e-3*size, "step %d of size %v", step, size)
			}
		})
	}
}

// What a step leaves out comes in the next ones: of gradients that stay as they are the mean over steps comes to the
// mean over ranks, with a fraction of the bytes.
func TestFeedback(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel()
		p, r := newReducer(t, c, m, powersgd.Options{Rank: 2}, false)
		defer r.Close()
		mine, want := random(c.Rank(), 0, len(m.all)), mean(2, 0, len(m.all))
		sums := make([]float64, len(m.all))
		off := func(steps int) (most float64) {
			for i, s := range sums {
				most = max(most, math.Abs(s/float64(steps)-float64(want[i])))
			}
			return most
		}
		var early float64
		for step := 1; step <= 400; step++ {
			m.step(t, r, func(i int) float32 { return mine[i] })
			same(t, c, m.all)
			for i, x := range m.all {
				sums[i] += float64(x)
			}
			if step == 4 {
				early = off(step)
			}
		}
		require.Greater(t, early, .5)
		require.Less(t, off(400), .06)
		require.Len(t, p.Errors(), 3)
		require.NotZero(t, p.Errors()[0][0])
	})
}

// No number is told by all ranks, and the next step begins anew.
func TestNaN(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel()
		p, r := newReducer(t, c, m, powersgd.Options{}, false)
		defer r.Close()
		for step := range 3 {
			m.step(t, r, func(i int) float32 {
				if step == 1 && i == 5 && c.Rank() == 1 {
					return float32(math.NaN())
				}
				return float32(i%30 + 1)
			})
			if step == 1 {
				require.True(t, math.IsNaN(float64(m.all[5])))
				require.Zero(t, p.Errors()[0][0])
				continue
			}
			for i := range 600 {
				require.InDelta(t, i%30+1, m.all[i], 1e-3)
			}
		}
	})
}

func TestRefused(t *testing.T) {
	for want, o := range map[string]powersgd.Options{
		"powersgd: Rank is -1, Rate 2, Start 0: none is negative":          {Rank: -1},
		"powersgd: Rank is 1, Rate -1, Start 0: none is negative":          {Rate: -1},
		"powersgd: matrix 0 has 3 numbers, and is 2 x 2":                   {Matrices: []powersgd.Matrix{{Grad: make([]float32, 3), Rows: 2, Cols: 2}}},
		"powersgd: matrix 0 has 0 numbers, and is 0 x 2":                   {Matrices: []powersgd.Matrix{{Cols: 2}}},
		"powersgd: matrix 0 has 1 numbers, and is 4611686018427387904 x 4": {Matrices: []powersgd.Matrix{{Grad: make([]float32, 1), Rows: 1 << 62, Cols: 4}}},
	} {
		_, err := powersgd.New(o)
		require.EqualError(t, err, want)
	}
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		g := make([]float32, 400)
		whole := powersgd.Matrix{Grad: g, Rows: 20, Cols: 20}
		for want, tc := range map[string]struct {
			matrices []powersgd.Matrix
			buf      ccl.Buf
		}{
			"powersgd: matrix 0 is part of several gradients":                  {[]powersgd.Matrix{whole}, ccl.BufOf(g[10:])},
			"powersgd: matrix 1 shares memory with another":                    {[]powersgd.Matrix{whole, whole}, ccl.BufOf(g)},
			"powersgd: the Hook is for float32 in host memory, not for double": {[]powersgd.Matrix{whole}, ccl.BufOf(make([]float64, 2))},
		} {
			p, err := powersgd.New(powersgd.Options{Matrices: tc.matrices})
			require.NoError(t, err)
			own, err := c.Split(t.Context(), 0, 0)
			require.NoError(t, err)
			r, err := ddp.New(t.Context(), own, []ccl.Buf{tc.buf}, &ddp.Options{Hook: p.Hook})
			require.NoError(t, err)
			require.ErrorContains(t, r.All(t.Context()), want)
			r.Close()
			own.Close()
		}
	})
}
