package ep_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/ep"
)

const tokens, width, experts, top = 12, 3, 4, 2

// numbers are those of testdata/reference.py.
func numbers[T ep.Float](seed, n int) (list []T) {
	for range n {
		seed = seed * 48271 % 2147483647
		list = append(list, T(float64(seed)/2147483647*2-1))
	}
	return list
}

// kinds are the layers of the reference.
func kinds(c *ccl.Comm, kind string) *ep.Layer {
	l := &ep.Layer{Comm: c, Experts: experts, Top: top, Width: width, Normalize: true}
	if kind == "mixtral" {
		l.Balance = .02
	} else {
		l.Scores, l.Scale, l.Bias = ep.Sigmoid, 2.5, numbers[float64](5, experts)
	}
	return l
}

// run is a step of a layer whose experts are tanh(W x): forward and backward. It returns what this rank has of y, dx
// and dlogits, and of dw, the gradients of its experts.
func run[T ep.Float](ctx context.Context, t testing.TB, l *ep.Layer, x, logits, w, dy []T) (p *ep.Pass[T], y, dx, dlogits, dw []T) {
	p, err := ep.Route(ctx, l, logits)
	require.NoError(t, err)
	rows, err := p.Dispatch(ctx, x)
	require.NoError(t, err)
	first, n := l.Comm.Rank()*p.Local(), l.Width
	out := make([]T, len(rows))
	each := func(f func(e, at int, w []T)) {
		for e := range p.Local() {
			lo, hi := p.Rows(e)
			for i := lo; i < hi; i++ {
				f(e, i*n, w[(first+e)*n*n:(first+e+1)*n*n])
			}
		}
	}
	each(func(_, at int, w []T) {
		for i := range n {
			sum := T(0)
			for j := range n {
				sum += T(w[i*n+j] * rows[at+j])
			}
			out[at+i] = T(math.Tanh(float64(sum)))
		}
	})
	y, err = p.Combine(ctx, out)
	require.NoError(t, err)
	dout, err := p.CombineGrad(ctx, dy)
	require.NoError(t, err)
	drows := make([]T, len(rows))
	dw = make([]T, p.Local()*n*n)
	each(func(e, at int, w []T) {
		for i := range n {
			d := dout[at+i] * (1 - T(out[at+i]*out[at+i]))
			for j := range n {
				drows[at+j] += T(w[i*n+j] * d)
				dw[e*n*n+i*n+j] += T(d * rows[at+j])
			}
		}
	})
	dx, err = p.DispatchGrad(ctx, drows)
	require.NoError(t, err)
	return p, y, dx, p.RouteGrad(), dw
}

// A layer on 1, 2 and 4 ranks, which have unequal numbers of tokens, is torch's of all tokens.
func TestAsTorch(t *testing.T) {
	raw, err := os.ReadFile("testdata/reference.json")
	require.NoError(t, err)
	var want map[string][]float64
	require.NoError(t, json.Unmarshal(raw, &want))
	x, logits := numbers[float64](1, tokens*width), numbers[float64](2, tokens*experts)
	w, dy := numbers[float64](3, experts*width*width), numbers[float64](4, tokens*width)
	for i := range logits {
		logits[i] *= 2
	}
	for _, kind := range []string{"mixtral", "deepseek"} {
		for n, cuts := range map[int][]int{1: {0, 12}, 2: {0, 5, 12}, 4: {0, 3, 3, 10, 12}} {
			t.Run(fmt.Sprint(kind, "/", n), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					lo, hi := cuts[c.Rank()], cuts[c.Rank()+1]
					p, y, dx, dlogits, dw := run(t.Context(), t, kinds(c, kind), x[lo*width:hi*width],
						logits[lo*experts:hi*experts], w, dy[lo*width:hi*width])
					require.InDeltaSlice(t, want[kind+" y"][lo*width:hi*width], y, 1e-14)
					require.InDeltaSlice(t, want[kind+" dx"][lo*width:hi*width], dx, 1e-14)
					mine := data.Range
					first, last := mine(experts, c.Rank(), n)
					require.InDeltaSlice(t, want[kind+" dw"][first*width*width:last*width*width], dw, 1e-14)
					require.InDelta(t, want[kind+" aux"][0], p.Aux(), 1e-15)
					if kind == "mixtral" { // of the auxiliary loss n times as much, for a mean over ranks
						alone := kinds(c, kind)
						alone.Balance = 0
						_, _, _, without, _ := run(t.Context(), t, alone, x[lo*width:hi*width], logits[lo*experts:hi*experts], w,
							dy[lo*width:hi*width])
						for i := range dlogits {
							dlogits[i] = without[i] + (dlogits[i]-without[i])/float64(n)
						}
					}
					require.InDeltaSlice(t, want[kind+" dlogits"][lo*experts:hi*experts], dlogits, 1e-14)
				})
			})
		}
	}
}

// What a rank has of y and dx, and the gradients of the experts, have the same bits on any number of ranks.
func TestBits(t *testing.T) {
	const tokens, experts, top, width = 240, 8, 3, 5
	x, logits := numbers[float32](1, tokens*width), numbers[float32](2, tokens*experts)
	w, dy := numbers[float32](3, experts*width*width), numbers[float32](4, tokens*width)
	var want [3][]float32
	for _, n := range []int{1, 2, 4, 8} {
		var mu sync.Mutex
		got := [3][][]float32{make([][]float32, n), make([][]float32, n), make([][]float32, n)}
		ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
			lo, hi := data.Range(tokens, c.Rank(), n)
			l := &ep.Layer{Comm: c, Experts: experts, Top: top, Width: width}
			p, y, dx, _, dw := run(t.Context(), t, l, x[lo*width:hi*width], logits[lo*experts:hi*experts], w, dy[lo*width:hi*width])
			mu.Lock()
			defer mu.Unlock()
			got[0][c.Rank()], got[1][c.Rank()], got[2][c.Rank()] = y, dx, dw
			total := int64(0)
			for _, n := range p.Loads() {
				total += n
			}
			require.EqualValues(t, tokens*top, total)
		})
		for i := range got {
			all := slices.Concat(got[i]...)
			if n == 1 {
				want[i] = all
			}
			require.Equal(t, want[i], all, "%d ranks", n)
		}
	}
}

// An expert takes as many tokens of a rank as there is room for, first choices first; the others go without, and have no
// gradient by it.
func TestCapacity(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		l := &ep.Layer{Comm: c, Experts: 2, Top: 2, Width: 1, Capacity: .5} // 2 rows of 4 choices for each
		logits := []float64{1, 0, 1, 0, 1, 0, 0, 1}                         // of 4 tokens: three choose expert 0 first
		p, err := ep.Route(t.Context(), l, logits)
		require.NoError(t, err)
		chosen, weights := p.Choices()
		require.Equal(t, []int32{0, 1, 0, 1, 0, 1, 1, 0}, chosen)
		high := 1 / (1 + math.Exp(-1))
		// Expert 0 has room for the first choices of tokens 0 and 1; expert 1 for token 3's, and then for token 0's second.
		require.InDeltaSlice(t, []float64{high, 1 - high, high, 0, 0, 0, high, 0}, weights, 1e-15)
		require.Equal(t, []int64{4, 4}, p.Loads())
		rows, err := p.Dispatch(t.Context(), []float64{1, 2, 3, 4})
		require.NoError(t, err)
		require.Equal(t, [][]float64{{1, 2, 1, 2}, {1, 4, 1, 4}}[c.Rank()], rows)
		y, err := p.Combine(t.Context(), rows)
		require.NoError(t, err)
		require.InDeltaSlice(t, []float64{1, 2 * high, 0, 4 * high}, y, 1e-15)
		dout, err := p.CombineGrad(t.Context(), []float64{1, 1, 1, 1})
		require.NoError(t, err)
		dx, err := p.DispatchGrad(t.Context(), dout)
		require.NoError(t, err)
		require.InDeltaSlice(t, []float64{1, high, 0, high}, dx, 1e-15)
		d := p.RouteGrad()
		require.Equal(t, []float64{0, 0}, d[4:6], "token 2 went nowhere")
		require.InDelta(t, high*(1-high)*2, d[2], 1e-15)
	})
}

func TestRebalance(t *testing.T) {
	bias := []float64{0, .5, 0, 0}
	require.NoError(t, ep.Rebalance(bias, []int64{9, 1, 5, 5}, .25))
	require.Equal(t, []float64{-.25, .75, 0, 0}, bias)
	require.EqualError(t, ep.Rebalance(bias, []int64{1}, 1), "ep: a bias of 4 experts, and loads of 1")
}

// Scores that are 0 in a float64 have weights of 0, and gradients of 0, and not 0 divided by 0.
func TestNoScores(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		l := kinds(c, "deepseek")
		logits, x := make([]float64, 2*experts), numbers[float64](1, 2*width)
		for i := range logits {
			logits[i] = -800
		}
		p, y, dx, dlogits, dw := run(t.Context(), t, l, x, logits, numbers[float64](3, experts*width*width), x)
		_, weights := p.Choices()
		for _, list := range [][]float64{weights, y, dx, dlogits, dw} {
			require.Equal(t, make([]float64, len(list)), list)
		}
	})
}

func TestRefused(t *testing.T) {
	good := func(c *ccl.Comm) *ep.Layer { return &ep.Layer{Comm: c, Experts: 4, Top: 2, Width: 3} }
	route := func(change func(l *ep.Layer)) func(ctx context.Context, c *ccl.Comm) error {
		return func(ctx context.Context, c *ccl.Comm) error {
			l := good(c)
			change(l)
			_, err := ep.Route(ctx, l, make([]float32, 4*l.Experts))
			return err
		}
	}
	with := func(do func(ctx context.Context, p *ep.Pass[float32]) error) func(ctx context.Context, c *ccl.Comm) error {
		return func(ctx context.Context, c *ccl.Comm) error {
			p, err := ep.Route(ctx, good(c), make([]float32, 8))
			if err != nil {
				return err
			}
			return do(ctx, p)
		}
	}
	for want, call := range map[string]func(ctx context.Context, c *ccl.Comm) error{
		"ep: 3 Experts on 2 ranks: each has as many": route(func(l *ep.Layer) { l.Experts = 3 }),
		"ep: Top is 5 of 4 Experts, and Width 3":     route(func(l *ep.Layer) { l.Top = 5 }),
		"ep: Top is 2 of 4 Experts, and Width 0":     route(func(l *ep.Layer) { l.Width = 0 }),
		"ep: Top is 2 of 4 Experts, and Width 4611686018427387904": func(ctx context.Context, c *ccl.Comm) error {
			l := good(c)
			l.Width = 1 << 62 // four of which are 0 in an int
			p, err := ep.Route(ctx, l, make([]float32, 4*l.Experts))
			if err == nil {
				_, err = p.Dispatch(ctx, nil)
			}
			return err
		},
		"ep: Scores are Softmax or Sigmoid":      route(func(l *ep.Layer) { l.Scores = 2 }),
		"ep: Capacity is -1, Balance 0, Scale 0": route(func(l *ep.Layer) { l.Capacity = -1 }),
		"Capacity is 0, Balance 0, Scale -Inf":   route(func(l *ep.Layer) { l.Scale = math.Inf(-1) }),
		"ep: Balance needs Softmax; with Sigmoid use Bias and Rebalance": route(func(l *ep.Layer) {
			l.Balance, l.Scores = .1, ep.Sigmoid
		}),
		"ep: 1 numbers of Bias for 4 Experts": route(func(l *ep.Layer) { l.Bias = []float64{1} }),
		"differ in their Layers":              route(func(l *ep.Layer) { l.Scale = float64(1 + l.Comm.Rank()) }),
		"ep: 7 logits: a token has 4": func(ctx context.Context, c *ccl.Comm) error {
			_, err := ep.Route(ctx, good(c), make([]float32, 7))
			return err
		},
		"ep: Dispatch of 5 numbers: 2 tokens have 3 each": with(func(ctx context.Context, p *ep.Pass[float32]) error {
			_, err := p.Dispatch(ctx, make([]float32, 5))
			return err
		}),
		"ep: Combine of 1 numbers: ": with(func(ctx context.Context, p *ep.Pass[float32]) error {
			_, err := p.Combine(ctx, make([]float32, 1))
			return err
		}),
		"ep: CombineGrad of 6 numbers: it comes after Combine, and 2 tokens have 3 each": with(func(ctx context.Context,
			p *ep.Pass[float32]) error {
			_, err := p.CombineGrad(ctx, make([]float32, 6))
			return err
		}),
	} {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			require.ErrorContains(t, call(t.Context(), c), want) // or what the other rank has aborted with
		})
	}
	_, err := ep.Route(t.Context(), &ep.Layer{}, []float32{})
	require.EqualError(t, err, "ep: a Layer without a Comm")
}
