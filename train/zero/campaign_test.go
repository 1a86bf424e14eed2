package zero_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/zero"
)

// replica is a model on one rank: what every layout must come to.
type replica struct{ p, g, m, v [][][]float64 }

// oddUnits are n units of 0 to 1000 elements.
func oddUnits(n int) (units [][]int) {
	for i := range n {
		units = append(units, [][]int{{1}, {0, 5}, {17}, {33, 1, 2}, {64}, {3, 0}, {1000}, {1}}[i%8])
	}
	return units
}

func newReplica(units [][]int) *replica {
	x, r := &replica{}, rand.New(rand.NewPCG(3, 4))
	for _, lens := range units {
		var p, g, m, v [][]float64
		for _, n := range lens {
			w := make([]float64, n)
			for i := range w {
				w[i] = r.NormFloat64()
			}
			p, g, m, v = append(p, w), append(g, make([]float64, n)), append(m, make([]float64, n)), append(v, make([]float64, n))
		}
		x.p, x.g, x.m, x.v = append(x.p, p), append(x.g, g), append(x.m, m), append(x.v, v)
	}
	return x
}

// addGrads adds the gradients of a sample, which depend on the parameters.
func addGrads(g, w []float64, sample float64) {
	for i := range w {
		g[i] += w[i]*sample - float64(i%9)/7
	}
}

func sampleOf(step, micro, rank int) float64 {
	return rand.New(rand.NewPCG(uint64(step), uint64(100*micro+rank))).Float64() + .5
}

const (
	campaignSteps = 7
	spoiled       = 4 // in this step the gradient of a rank is NaN
	shortened     = 6 // and this has one micro batch fewer, where there are several
)

func microsOf(step, micro int) int {
	if step == shortened && micro > 1 {
		return micro - 1
	}
	return micro
}

func campaignAdam(step int) optim.AdamW {
	return optim.AdamW{LR: optim.Cosine(step, 2, campaignSteps, .05, .001), Beta2: .95, Decay: .1}
}

// run makes all steps, and returns the norms of their gradients.
func (x *replica) run(t testing.TB, ranks, micro int, clip float64) (norms []float64) {
	adam := 0
	for step := 1; step <= campaignSteps; step++ {
		if step == spoiled {
			norms = append(norms, math.NaN())
			continue
		}
		adam++
		micros, squares := microsOf(step, micro), 0.
		for i := range x.p {
			for j, g := range x.g[i] {
				clear(g)
				for r := range ranks {
					for k := range micros {
						addGrads(g, x.p[i][j], sampleOf(step, k, r))
					}
				}
				for k := range g {
					g[k] /= float64(ranks * micros)
					squares += g[k] * g[k]
				}
			}
		}
		norm := math.Sqrt(squares)
		norms = append(norms, norm)
		for i := range x.p {
			for j, g := range x.g[i] {
				for k := range g {
					g[k] *= min(1, clip/(norm+1e-6))
				}
				require.NoError(t, optim.Apply(campaignAdam(adam), adam, x.p[i][j], g, x.m[i][j], x.v[i][j]))
			}
		}
	}
	return norms
}

// 288 layouts, and what training does beside its plain loop: evaluations, a step that is skipped, one that is short, a Release
// at another place. All come to the parameters and norms of one rank.
func TestCampaign(t *testing.T) {
	counts, aheads := []int{1, 8, 200}, []int{1, 3}
	if testing.Short() {
		counts, aheads = []int{8}, []int{1}
	}
	for _, n := range counts {
		units := oddUnits(n)
		for _, clip := range []float64{.7, 1e6} {
			for _, micro := range []int{1, 3} {
				for _, ranks := range []int{1, 2, 3} {
					want := newReplica(units)
					norms := want.run(t, ranks, micro, clip)
					for stage := range 4 {
						for _, ahead := range aheads {
							o := &zero.Options{Stage: stage, Ahead: ahead, Micro: micro, Clip: clip, Poison: true}
							name := fmt.Sprintf("%d units, clip %v, %d micro batches, %d ranks, stage %d, %d ahead", n, clip, micro, ranks, stage, ahead)
							t.Run(name, func(t *testing.T) {
								ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) { campaign(t, c, units, want, norms, o) })
							})
						}
					}
				}
			}
		}
	}
}

func campaign(t testing.TB, c *ccl.Comm, units [][]int, want *replica, norms []float64, o *zero.Options) {
	ctx := t.Context()
	m := newModel[float64, float64](t, c, units, o)
	first, root := newReplica(units), c.Size()-1
	avg, sq := shards(m, len(units)), shards(m, len(units))
	for i := range units {
		require.NoError(t, m.Load(ctx, i, first.p[i], root))
	}
	r := rand.New(rand.NewPCG(9, uint64(len(units)))) // alike on all ranks
	adam := 0
	for step := 1; step <= campaignSteps; step++ {
		if r.IntN(2) == 0 { // an evaluation, of all units or of some
			for i := range 1 + r.IntN(len(units)) {
				paramsOf(t, m, i)
				m.Release(i)
			}
		}
		micros := microsOf(step, o.Micro)
		require.NoError(t, m.Short(micros))
		late := r.IntN(3) == 0 // each unit is released a turn later
		for k := range micros {
			for i := range units {
				paramsOf(t, m, i)
				if late && i > 0 {
					m.Release(i - 1)
				} else if !late {
					m.Release(i)
				}
			}
			if late {
				m.Release(len(units) - 1)
			}
			for i := len(units) - 1; i >= 0; i-- {
				w := paramsOf(t, m, i)
				g := gradsOf(t, m, i)
				for j := range w {
					addGrads(g[j], w[j], sampleOf(step, k, c.Rank()))
				}
				if step == spoiled && c.Rank() == root && i == 0 && k == 0 {
					g[0][0] = math.NaN()
				}
				m.Release(i)
				require.NoError(t, m.Reduce(i))
			}
		}
		adam++
		err := m.Step(ctx, func(p zero.Piece, w, g []float64) error {
			n := p.At + len(w)
			return optim.Apply(campaignAdam(adam), adam, w, g, avg[p.Unit][p.At:n], sq[p.Unit][p.At:n])
		})
		if step == spoiled {
			require.ErrorIs(t, err, zero.ErrNotFinite)
			adam--
			continue
		}
		require.NoError(t, err)
		require.InEpsilon(t, norms[step-1], m.Norm(), 1e-9)
	}
	for i := range units {
		w := paramsOf(t, m, i)
		for j := range w {
			require.InDeltaSlice(t, want.p[i][j], w[j], 1e-9, "unit %d, parameter %d", i, j)
		}
		m.Release(i)
	}
	require.NoError(t, m.Close())
}
