package zero_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/zero"
)

// A frozen matrix takes no memory but for itself, and the loop leaves its gradients out.
func ExampleModel_Frozen() {
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		m, err := zero.New[ccl.BFloat16, float32](ctx, c, [][]int{{64_000}, {640}}, &zero.Options{Stage: 1, Frozen: func(unit int) bool { return unit == 0 }})
		if err != nil {
			return err
		}
		defer m.Close()
		for i := 1; i >= 0; i-- {
			if m.Frozen(i) {
				continue
			}
			g, err := m.Grads(ctx, i)
			if err != nil {
				return err
			}
			g[0][0] = 0x3f80 // 1
			if err := m.Reduce(i); err != nil {
				return err
			}
		}
		err = m.Step(ctx, func(p zero.Piece, w, g []float32) error {
			if c.Rank() == 0 {
				fmt.Println("unit", p.Unit, "gradient", g[0])
			}
			return nil
		})
		if b := m.Bytes(); c.Rank() == 0 {
			fmt.Println(b.Params, "bytes of parameters,", b.Grads, "of gradients,", b.Master, "of master copies")
		}
		return err
	})
	// Output:
	// unit 1 gradient 1
	// 129280 bytes of parameters, 1280 of gradients, 1280 of master copies
}

// loraUnits are a large frozen matrix, a small pair that is trained beside it, and the same again.
var loraUnits = [][]int{{960}, {40, 3}, {}, {500, 7}, {64}}

func loraFrozen(unit int) bool { return unit == 0 || unit == 3 }

// loraStep is one step of a model whose gradients depend on the frozen units, too.
func loraStep(t testing.TB, m *zero.Model[float64, float64], rank, micros int, update zero.Update[float64]) {
	for micro := range micros {
		frozen := 0.
		for i := range loraUnits {
			w := paramsOf(t, m, i)
			if m.Frozen(i) {
				frozen += w[0][5]
			}
			m.Release(i)
		}
		for i := len(loraUnits) - 1; i >= 0; i-- {
			w := paramsOf(t, m, i)
			if !m.Frozen(i) {
				g := gradsOf(t, m, i)
				for j := range g {
					for k := range g[j] {
						g[j][k] += w[j][k]*frozen + float64(rank+micro)
					}
				}
				require.NoError(t, m.Reduce(i))
			}
			m.Release(i)
		}
	}
	require.NoError(t, m.Step(t.Context(), update))
}

// Frozen units stay as they are and cost nothing but themselves: no memory for gradients, no bytes on the wire. The others
// have the numbers of a plain loop, and one result at all stages.
func TestFrozen(t *testing.T) {
	const n, steps, rate = 2, 4, .01
	for _, micros := range []int{1, 2} {
		plain := make([][]float64, len(loraUnits))
		for i, lens := range loraUnits {
			for j, k := range lens {
				for e := range k {
					plain[i] = append(plain[i], float64(i+j)+float64(e)/1000)
				}
			}
		}
		first, trained, all := make([][]float64, len(plain)), 0, 0
		for i := range plain {
			first[i] = append(first[i], plain[i]...)
		}
		for range steps {
			frozen := plain[0][5] + plain[3][5]
			for i := range plain {
				for e := range plain[i] {
					if !loraFrozen(i) {
						sum := 0.
						for r := range n {
							for micro := range micros {
								sum += plain[i][e]*frozen + float64(r+micro)
							}
						}
						plain[i][e] -= rate * sum / float64(n*micros)
					}
				}
			}
		}
		pad := func(x int) int { return ((x+n-1)/n + 7) / 8 * 8 * n } // a part begins at a cache line
		for i := range plain {
			all += pad(len(plain[i]))
			if !loraFrozen(i) {
				trained += pad(len(plain[i]))
			}
		}
		for stage := range 4 {
			t.Run(fmt.Sprintf("stage %d, %d micro batches", stage, micros), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					ctx := t.Context()
					m := newModel[float64, float64](t, c, loraUnits, &zero.Options{Stage: stage, Micro: micros, Frozen: loraFrozen})
					for i, lens := range loraUnits {
						var full [][]float64
						at := 0
						for _, k := range lens {
							full, at = append(full, first[i][at:at+k]), at+k
						}
						require.NoError(t, m.Load(ctx, i, full, 1))
					}
					update := func(p zero.Piece, w, g []float64) error {
						if loraFrozen(p.Unit) {
							return fmt.Errorf("unit %d is frozen", p.Unit)
						}
						for i := range w {
							w[i] -= rate * g[i]
						}
						return nil
					}
					for range steps {
						loraStep(t, m, c.Rank(), micros, update)
					}
					for i, lens := range loraUnits {
						w := paramsOf(t, m, i)
						at := 0
						for j, k := range lens {
							if loraFrozen(i) {
								require.Equal(t, plain[i][at:at+k], w[j])
							} else {
								require.InDeltaSlice(t, plain[i][at:at+k], w[j], 1e-12)
							}
							at += k
						}
						m.Release(i)
					}
					part := func(from, x int) int64 {
						if stage >= from {
							x /= n
						}
						return int64(8 * x)
					}
					b := m.Bytes()
					require.Equal(t, part(3, all), b.Params)
					require.Equal(t, part(2, trained), b.Grads)
					reduced, gathered := int64(8*trained), int64(8*trained)
					if stage >= 2 {
						reduced *= int64(micros)
					}
					require.Equal(t, reduced, m.Stats().Reduced)
					if stage == 1 || stage == 2 {
						require.Equal(t, gathered, m.Stats().Gathered)
					}

					require.Zero(t, ccltest.Allocs(t, c, 3, func() { loraStep(t, m, c.Rank(), micros, update) }))
					require.NoError(t, m.Close())
				})
			})
		}
	}
}

// A frozen unit is saved and loaded in the type that it has, with the states that are given of it, and frozen for all or none.
func TestFrozenTensors(t *testing.T) {
	dir := t.TempDir()
	for step, at := range [][2]int{{2, 3}, {3, 0}, {1, 2}} {
		ccltest.Run(t, at[0], func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			m := newModel[ccl.BFloat16, float32](t, c, loraUnits, &zero.Options{Stage: at[1], Frozen: loraFrozen})
			defer m.Close()
			momenta := zero.State[float32]{Prefix: "m.", Of: shards(m, len(loraUnits))}
			momenta.Of[3] = nil // of a frozen unit, as that of unit 0 is
			if step == 0 {
				for i, lens := range loraUnits {
					require.NoError(t, m.Load(ctx, i, whole(lens, func(e int) float32 { return float32(e%200) + float32(i) }), 0))
					for _, p := range m.Pieces(i) {
						for e := p.Lo; e < p.Hi && i != 3; e++ {
							momenta.Of[i][p.At+e-p.Lo] = float32(e + 1)
						}
					}
				}
			}
			ts, err := m.Tensors(nil, momenta)
			require.NoError(t, err)
			if step > 0 {
				require.NoError(t, ckpt.Load(ctx, c, ckpt.Step(dir, step-1), nil, ts))
				require.NoError(t, m.Loaded(ctx))
			}
			for _, p := range m.Pieces(0) {
				for e := p.Lo; e < p.Hi; e++ {
					require.Equal(t, float32(e+1), momenta.Of[0][p.At+e-p.Lo])
				}
			}
			for i, lens := range loraUnits {
				w := paramsOf(t, m, i)
				for j, k := range lens {
					for e := range k {
						require.Equal(t, ccl.ToBFloat16(float32(e%200)+float32(i)), w[j][e])
					}
				}
				m.Release(i)
			}
			require.NoError(t, ckpt.Save(ctx, c, ckpt.Step(dir, step), nil, ts))
			if c.Rank() == 0 {
				in, err := ckpt.Inspect(ckpt.Step(dir, step))
				require.NoError(t, err)
				require.Equal(t, "[{0.0 BF16 [960]} {1.0 F32 [40]} {1.1 F32 [3]} {3.0 BF16 [500]} {3.1 BF16 [7]} {4.0 F32 [64]} {m.0.0 F32 [960]} {m.1.0 F32 [40]} {m.1.1 F32 [3]} {m.4.0 F32 [64]}]",
					fmt.Sprint(in.Tensors))
			}
		})
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		_, err := zero.New[float32, float32](t.Context(), c, loraUnits, &zero.Options{Frozen: func(unit int) bool { return unit == c.Rank() }})
		require.ErrorContains(t, err, `rank 0 has unit 0 with parameters of [960], frozen, rank 1 has unit 0 with parameters of [960]`)
		for what, call := range map[string]func(m *zero.Model[float32, float32]) error{
			"zero: Grads of unit 3, which is frozen and has none":          func(m *zero.Model[float32, float32]) error { _, err := m.Grads(t.Context(), 3); return err },
			"zero: Reduce of unit 3, which is frozen and has no gradients": func(m *zero.Model[float32, float32]) error { return m.Reduce(3) },
		} {
			own := ccltest.Split(t, c, c.Rank(), 0)
			m := newModel[float32, float32](t, own, loraUnits, &zero.Options{Frozen: loraFrozen})
			require.EqualError(t, call(m), what)
			require.NoError(t, m.Close())
			require.NoError(t, own.Close())
		}
	})
}

// A unit is frozen for a part of the training, and thawed again with the state that it had: gradual unfreezing.
func TestThawed(t *testing.T) {
	dir, units := t.TempDir(), [][]int{{40}, {24}}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		for phase, frozen := range []func(int) bool{nil, func(unit int) bool { return unit == 0 }, nil} {
			m := newModel[ccl.BFloat16, float32](t, c, units, &zero.Options{Stage: 1 + phase%2, Frozen: frozen})
			moments := zero.State[float32]{Prefix: "adamw.m.", Of: shards(m, len(units))}
			ts, err := m.Tensors(nil, moments)
			require.NoError(t, err)
			if phase == 0 {
				for _, p := range m.Pieces(0) {
					for e := p.Lo; e < p.Hi; e++ {
						moments.Of[0][p.At+e-p.Lo] = float32(e)
					}
				}
			} else {
				_, err := ckpt.LoadWith(t.Context(), c, ckpt.Step(dir, phase-1), nil, ts, ckpt.LoadOptions{Convert: true})
				require.NoError(t, err)
				require.NoError(t, m.Loaded(t.Context()))
				for _, p := range m.Pieces(0) {
					require.Equal(t, float32(p.Lo), moments.Of[0][p.At])
				}
			}
			require.NoError(t, ckpt.Save(t.Context(), c, ckpt.Step(dir, phase), nil, ts))
			moments.Of[0] = moments.Of[0][:1] // which is not all of it
			_, err = m.Tensors(nil, moments)
			require.ErrorContains(t, err, `state "adamw.m." has 1 elements of unit 0`)
			require.NoError(t, m.Close())
		}
	})
}

// A parameter that is frozen keeps its bits beside others of its unit, which have the numbers of a plain loop. Its gradient may be
// anything. Where all parameters of a unit are frozen, the unit is.
func TestFrozenParam(t *testing.T) {
	units := [][]int{{40, 3, 17}, {500, 7}, {64}}
	still := func(unit, param int) bool { return unit == 0 && param == 1 || unit == 1 }
	for stage := range 4 {
		t.Run(fmt.Sprintf("stage %d", stage), func(t *testing.T) {
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				ctx := t.Context()
				m := newModel[ccl.BFloat16, float32](t, c, units, &zero.Options{Stage: stage, FrozenParam: still})
				defer m.Close()
				require.Equal(t, []bool{false, true, false}, []bool{m.Frozen(0), m.Frozen(1), m.Frozen(2)})
				for i, lens := range units {
					require.NoError(t, m.Load(ctx, i, whole(lens, func(e int) float32 { return float32(e) }), 0))
				}
				averages := shards(m, len(units))
				averages[1] = nil
				const steps = 2
				for range steps {
					for _, i := range []int{2, 0} {
						for j, g := range gradsOf(t, m, i) {
							for e := range g {
								if g[e] = ccl.ToBFloat16(1); still(i, j) {
									g[e] = ccl.ToBFloat16(float32(math.NaN()))
								}
							}
						}
						require.NoError(t, m.Reduce(i))
					}
					require.NoError(t, m.Step(ctx, func(p zero.Piece, w, g []float32) error {
						if still(p.Unit, p.Param) {
							return fmt.Errorf("parameter %d of unit %d is frozen", p.Param, p.Unit)
						}
						for k := range w {
							w[k] -= g[k]
							averages[p.Unit][p.At+k] = 7
						}
						return nil
					}))
					require.InDelta(t, 11, m.Norm(), 1e-12, "of 40+17+64 gradients of 1")
				}
				for _, swapped := range []bool{false, true} {
					if swapped {
						require.NoError(t, m.Swap(ctx, averages))
					}
					for i, lens := range units {
						w := paramsOf(t, m, i)
						for j, n := range lens {
							for e := range n {
								want := float32(e - steps)
								switch {
								case still(i, j):
									want = float32(e)
								case swapped:
									want = 7
								}
								require.Equal(t, ccl.ToBFloat16(want), w[j][e], "%d.%d", i, j)
							}
						}
						m.Release(i)
					}
				}
			})
		})
	}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		_, err := zero.New[float32, float32](t.Context(), c, units, &zero.Options{FrozenParam: func(unit, param int) bool { return unit == 0 && param == c.Rank() }})
		require.ErrorContains(t, err, "rank 0 has unit 0 with parameters of [40 3 17], frozen: [true false false], rank 1 has unit 0 with parameters of [40 3 17], frozen: [false true false]")
	})
}

// A model that only evaluates has no gradients at all.
func TestAllFrozen(t *testing.T) {
	for stage := range 4 {
		ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
			m := newModel[ccl.BFloat16, float32](t, c, [][]int{{640}, {64}}, &zero.Options{Stage: stage, Micro: 2, ReduceMaster: true, Frozen: func(int) bool { return true }})
			b := m.Bytes()
			require.Zero(t, b.Grads+b.Master)
			forward(t, m, 2)
			require.NoError(t, m.Step(t.Context(), noUpdate))
			require.NoError(t, m.Close())
		})
	}
}
