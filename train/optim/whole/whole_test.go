package whole_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ddp"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/optim/whole"
	"github.com/goccl/goccl/train/zero"
)

// numbers are those of optim's testdata/reference.py.
func numbers[T optim.Float](seed, n int) (list []T) {
	for range n {
		seed = seed * 48271 % 2147483647
		list = append(list, T(float64(seed)/2147483647*2-1))
	}
	return list
}

// step makes one of an optimizer, on state that has twice the length of the tensor.
type step[T optim.Float] func(n int, t whole.Tensor, p, g, state []T) error

// steps are all optimizers, under the names of the reference.
func steps[T optim.Float]() map[string]step[T] {
	w := &whole.Workspace[T]{}
	return map[string]step[T]{
		"lamb": func(n int, t whole.Tensor, p, g, s []T) error {
			return whole.ApplyLAMB(whole.LAMB{LR: .01, Decay: .1}, n, t, p, g, s[:len(p)], s[len(p):])
		},
		"adafactor": func(n int, t whole.Tensor, p, g, s []T) error {
			rows, cols := t.State()
			return whole.ApplyAdafactor(whole.Adafactor{Decay: .1}, n, t, p, g, s[:rows], s[rows:rows+cols])
		},
		"muon": func(_ int, t whole.Tensor, p, g, s []T) error {
			return whole.ApplyMuon(whole.Muon{LR: .02, Decay: .1}, t, p, g, s[:len(p)], w)
		},
		"muon plain match": func(_ int, t whole.Tensor, p, g, s []T) error {
			return whole.ApplyMuon(whole.Muon{LR: .02, Decay: .1, Plain: true, MatchAdamW: true}, t, p, g, s[:len(p)], w)
		},
	}
}

// The numbers of the formulas, which torch.optim.Adafactor of PyTorch 2.15 has, too. Its Muon multiplies in bfloat16, and differs by
// 1e-3.
func TestReference(t *testing.T) {
	raw, err := os.ReadFile("../testdata/reference.json")
	require.NoError(t, err)
	var want map[string][]float64
	require.NoError(t, json.Unmarshal(raw, &want))
	for name, apply := range steps[float64]() {
		for _, shape := range [][2]int{{3, 5}, {5, 3}, {1, 7}, {7, 1}} {
			x := whole.Tensor{Name: "w", Rows: shape[0], Cols: shape[1]}
			n := x.Rows * x.Cols
			p, state := numbers[float64](1, n), make([]float64, 2*n)
			for k := 1; k <= 4; k++ {
				require.NoError(t, apply(k, x, p, numbers[float64](1000+k, n), state))
			}
			what := fmt.Sprintf("%s %d x %d", name, x.Rows, x.Cols)
			require.NotEmpty(t, want[what])
			require.InDeltaSlice(t, want[what], p, 1e-12, what)
		}
	}
}

const rows, cols, each, count = 16, 24, 4, 3 // units of 4 matrices of one size, and steps
const size = rows * cols

// alone is what one rank that has all makes of a unit, by hand.
func alone(t *testing.T, apply step[float32]) (all []float32) {
	for i := range each {
		p, state := numbers[float32](1+i, size), make([]float32, 2*size)
		for k := 1; k <= count; k++ {
			require.NoError(t, apply(k, whole.Tensor{Rows: rows, Cols: cols}, p, numbers[float32](100*k+i, size), state))
		}
		all = append(all, p...)
	}
	return all
}

// The bits are those of every machine.
func TestBits(t *testing.T) {
	for name, golden := range map[string]string{"lamb": "d959848d6e968d7a", "adafactor": "6e9501ee7d7495d0", "muon": "54f4289a6db000b6", "muon plain match": "5cc8725a5cb2c198"} {
		require.Equal(t, golden, fmt.Sprintf("%x", ddp.Hash(alone(t, steps[float32]()[name]))), name)
	}
}

// On any number of ranks, at every stage, the bits are those of one rank that has all.
func TestBitsOverShards(t *testing.T) {
	names := slices.Sorted(maps.Keys(steps[float32]())) // a unit for each
	want := map[string][]float32{}
	for name, apply := range steps[float32]() {
		want[name] = alone(t, apply)
	}
	for _, ranks := range []int{1, 2, 4} {
		for stage := range 4 {
			if ranks < 4 && stage != ranks-1 && stage < 3 { // few of the few
				continue
			}
			ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
				units := make([][]int, len(names))
				for u := range units {
					units[u] = slices.Repeat([]int{size}, each)
				}
				m, err := zero.New[float32, float32](t.Context(), c, units, &zero.Options{Stage: stage})
				require.NoError(t, err)
				defer m.Close()
				var full [][]float32
				for i := range each {
					full = append(full, numbers[float32](1+i, size))
				}
				for u := range units {
					require.NoError(t, m.Load(t.Context(), u, full, 0))
				}
				apply, state := steps[float32](), map[[2]int][]float32{}
				for k := 1; k <= count; k++ {
					for u := len(units) - 1; u >= 0; u-- {
						g, err := m.Grads(t.Context(), u)
						require.NoError(t, err)
						for i := range g {
							copy(g[i], numbers[float32](100*k+i, size))
						}
						require.NoError(t, m.Reduce(u))
					}
					require.NoError(t, m.Step(t.Context(), func(p zero.Piece, w, g []float32) error {
						at := [2]int{p.Unit, p.Param}
						if state[at] == nil {
							state[at] = make([]float32, 2*size)
						}
						return apply[names[p.Unit]](k, whole.Tensor{Name: fmt.Sprint(at), Rows: rows, Cols: cols, Lo: p.Lo, Hi: p.Hi}, w, g, state[at])
					}))
				}
				for u, name := range names {
					got, err := m.Params(t.Context(), u)
					require.NoError(t, err)
					for i := range got {
						require.Equal(t, want[name][i*size:][:size], got[i], "%s, %d ranks, stage %d", name, ranks, stage)
					}
					m.Release(u)
				}
			})
		}
	}
}

// A shard that has a part of a tensor is told so, on every rank that has one, and nothing has changed.
func TestPartOfATensor(t *testing.T) {
	for name, apply := range steps[float32]() {
		p, g, state := numbers[float32](1, 8), numbers[float32](2, 8), make([]float32, 100)
		err := apply(1, whole.Tensor{Name: "h.3.attn", Rows: 6, Cols: 4, Lo: 4, Hi: 12}, p, g, state)
		require.ErrorContains(t, err, `takes all of "h.3.attn", 6 x 4, and `, name)
		require.ErrorContains(t, err, "this shard has elements 4 to 12 of 24: an Optimizer takes parts", name)
		require.Equal(t, numbers[float32](1, 8), p)
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m, err := zero.New[float32, float32](t.Context(), c, [][]int{{6 * 16}}, &zero.Options{Stage: 1})
		require.NoError(t, err)
		defer m.Close()
		_, err = m.Grads(t.Context(), 0)
		require.NoError(t, err)
		require.NoError(t, m.Reduce(0))
		err = m.Step(t.Context(), func(p zero.Piece, w, g []float32) error {
			x := whole.Tensor{Name: "wte", Rows: 6, Cols: 16, Lo: p.Lo, Hi: p.Hi}
			return whole.ApplyMuon(whole.Muon{}, x, w, g, w, &whole.Workspace[float32]{})
		})
		require.ErrorContains(t, err, `Muon takes all of "wte", 6 x 16`)
	})
}

// A step on a tensor of no rows, or of no columns, is a step of nothing: its state stays, too.
func TestEmptyTensors(t *testing.T) {
	for name, apply := range steps[float64]() {
		for _, shape := range [][2]int{{0, 4}, {4, 0}, {0, 1}, {1, 0}, {0, 0}} {
			x := whole.Tensor{Name: "expert 3", Rows: shape[0], Cols: shape[1]}
			state := make([]float64, 2*max(shape[0], shape[1]))
			if name != "adafactor" {
				state = nil
			}
			require.NoError(t, apply(1, x, nil, nil, state), "%s, %d", name, shape)
			require.Equal(t, make([]float64, len(state)), append([]float64{}, state...), "%s, %d", name, shape)
		}
	}
}

func TestBadInput(t *testing.T) {
	x := whole.Tensor{Name: "w", Rows: 2, Cols: 3}
	a, b := make([]float64, 6), make([]float64, 5)
	w := &whole.Workspace[float64]{}
	for want, err := range map[string]error{
		`optim/whole: LAMB of "w", 2 x 3: it has 6 elements, but the slices of parameters, gradients and state have [6 6 5 6]`: whole.ApplyLAMB(whole.LAMB{}, 1, x, a, a, b, a),
		"optim: step 0; steps are counted from 1":                                                               whole.ApplyLAMB(whole.LAMB{}, 0, x, a, a, a, a),
		"optim/whole: LAMB: optim: AdamW with Beta1 1, Beta2 0.999":                                             whole.ApplyLAMB(whole.LAMB{Beta1: 1}, 1, x, a, a, a, a),
		`LAMB of "", 0 x 0: it has 0 elements, but the slices`:                                                  whole.ApplyLAMB(whole.LAMB{}, 1, whole.Tensor{}, a, a, a, a),
		`optim/whole: tensor "" is -1 x 0`:                                                                      whole.ApplyLAMB(whole.LAMB{}, 1, whole.Tensor{Rows: -1}, a, a, a, a),
		`tensor "w" is 4294967296 x 4294967296`:                                                                 whole.ApplyLAMB(whole.LAMB{}, 1, whole.Tensor{Name: "w", Rows: 1 << 32, Cols: 1 << 32}, a, a, a, a),
		`Adafactor of "w", 2 x 3: its state has 2 and 3 elements, not 6 and 3`:                                  whole.ApplyAdafactor(whole.Adafactor{}, 1, x, a, a, a, a[:3]),
		"steps are counted from 1":                                                                              whole.ApplyAdafactor(whole.Adafactor{}, -1, x, a, a, a[:2], a[:3]),
		"Adafactor with LR 0.01, Power -1, Floor 0.001, Clip 1: none is negative":                               whole.ApplyAdafactor(whole.Adafactor{Power: -1}, 1, x, a, a, a[:2], a[:3]),
		`Muon of "w" has no Workspace`:                                                                          whole.ApplyMuon(whole.Muon{}, x, a, a, a, nil),
		"Muon with Momentum 1, 5 iterations":                                                                    whole.ApplyMuon(whole.Muon{Momentum: 1}, x, a, a, a, w),
		`Muon of "w", 2 x 3: it has 6 elements, but the slices of parameters, gradients and state have [6 5 6]`: whole.ApplyMuon(whole.Muon{}, x, a, b, a, w),
	} {
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, make([]float64, 6), a)
}

// A step of Muon is orthogonal: its singular values are near 1, those of the gradient anything.
func TestMuonIsOrthogonal(t *testing.T) {
	const rows, cols = 4, 9
	p := make([]float64, rows*cols)
	g := numbers[float64](7, rows*cols)
	for j := range cols {
		g[j] *= 100
	}
	w := &whole.Workspace[float64]{Mul: mul}
	require.NoError(t, whole.ApplyMuon(whole.Muon{LR: 1, Iterations: 12}, whole.Tensor{Rows: rows, Cols: cols}, p, g, make([]float64, rows*cols), w))
	for i := range rows {
		for j := range rows {
			dot := 0.
			for k := range cols {
				dot += p[i*cols+k] * p[j*cols+k]
			}
			want := 0.
			if i == j {
				want = 1
			}
			require.InDelta(t, want, dot, .55, "%d %d", i, j)
		}
	}
	require.Positive(t, products, "the program's own product was asked")
}

var products int

// mul is a program's own product.
func mul(ta, tb bool, m, n, k int, a, b, c []float64) {
	products++
	for i := range m {
		for j := range n {
			for l := range k {
				x, y := i*k+l, l*n+j
				if ta {
					x = l*m + i
				}
				if tb {
					y = j*k + l
				}
				c[i*n+j] += a[x] * b[y]
			}
		}
	}
}

func TestNothingIsAllocated(t *testing.T) {
	const n = 12 * 8
	p, g, state := numbers[float32](1, n), numbers[float32](2, n), make([]float32, 2*n)
	for name, apply := range steps[float32]() {
		clear(state)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			require.NoError(t, apply(1, whole.Tensor{Rows: 12, Cols: 8}, p, g, state))
		}), name)
	}
}

// The share of a step in Adafactor's averages is a power of its number.
func TestRoot(t *testing.T) {
	for _, n := range []int{1, 2, 3, 10, 1000, 123456, 1 << 40, math.MaxInt} {
		for _, p := range []float64{.5, .8, 1, 2} {
			require.InEpsilon(t, math.Pow(float64(n), -p), whole.Root(n, p), 1e-14, "%d %v", n, p)
		}
	}
	require.Equal(t, .12848289633344695, whole.Root(13, .8)) // fused on arm64 it would be .12848289633344692
}
