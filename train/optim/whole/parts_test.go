package whole_test

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/optim/whole"
	"github.com/goccl/goccl/train/zero"
)

// What place says is padding of a parameter is not saved, nor is a parameter that is all padding here.
func TestOptimizerSavesNoPadding(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	place := func(_, param int) ckpt.Tensor {
		if param == 1 {
			return ckpt.Tensor{Name: "none", Shape: []int{20, 5}, Offset: []int{20, 0}, Size: []int{0, 5}}
		}
		return ckpt.Tensor{Name: "w", Shape: []int{20, 5}, Offset: []int{2, 0}, Size: []int{18, 5}, Hi: 90}
	}
	full := func(t testing.TB, c *ccl.Comm, m *zero.Model[float32, float32], o *whole.Optimizer[float32]) []ckpt.Tensor {
		params, err := m.Tensors(place)
		require.NoError(t, err)
		state, err := o.Tensors(place)
		require.NoError(t, err)
		require.Len(t, state, 2*len(params))
		for k, x := range state {
			require.Equal(t, params[k/2].Lo, x.Lo)
			require.Equal(t, params[k/2].Hi, x.Hi)
			require.Len(t, x.Data, x.Hi-x.Lo)
		}
		rest := make([]float32, 10)
		for _, name := range []string{"lamb.m.w", "lamb.v.w"} {
			state = append(state, ckpt.Tensor{Name: name, Shape: []int{20, 5}, Size: []int{2, 5}, Offset: []int{0, 0}, Data: rest})
		}
		return state
	}
	for _, ranks := range []int{2, 3} {
		ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
			m, err := zero.New[float32, float32](t.Context(), c, [][]int{{100, 5}}, &zero.Options{Stage: 3})
			require.NoError(t, err)
			defer m.Close()
			o, err := whole.New(t.Context(), c, m, [][]whole.Tensor{{{Name: "w", Rows: 20, Cols: 5}, {Rows: 1, Cols: 5}}},
				func(int, int) whole.Rule { return whole.LAMB{} })
			require.NoError(t, err)
			state := full(t, c, m, o)
			if ranks == 2 {
				require.NoError(t, ckpt.Save(t.Context(), c, dir, nil, state))
			} else {
				require.NoError(t, ckpt.Load(t.Context(), c, dir, nil, state))
			}
		})
	}
}

// An AdamW that is wrong ends the step before any parameter is changed, as the other rules do.
func TestOptimizerChecksAdamWFirst(t *testing.T) {
	rules := []whole.Rule{optim.AdamW{}, whole.LAMB{LR: 1}}
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		m, err := zero.New[float32, float32](t.Context(), c, [][]int{{4, 4}}, &zero.Options{Stage: 1})
		require.NoError(t, err)
		defer m.Close()
		require.NoError(t, m.Load(t.Context(), 0, [][]float32{{1, 2, 3, 4}, {1, 2, 3, 4}}, 0))
		o, err := whole.New(t.Context(), c, m, [][]whole.Tensor{{{Rows: 2, Cols: 2}, {Rows: 2, Cols: 2}}},
			func(_, param int) whole.Rule { return rules[1-param] })
		require.NoError(t, err)
		g, err := m.Grads(t.Context(), 0)
		require.NoError(t, err)
		copy(g[0], []float32{1, 1, 1, 1})
		require.NoError(t, m.Reduce(0))
		rules[0] = optim.AdamW{Beta2: 1}
		require.ErrorContains(t, o.Step(t.Context(), 1), "AdamW with Beta1 0.9, Beta2 1")
		require.Equal(t, []float32{1, 2, 3, 4, 1, 2, 3, 4}, m.Shard(0)[:8])
	})
}

// Ranks that have no part of any tensor step with those that have all.
func TestOptimizerOnRanksWithoutParts(t *testing.T) {
	tensors := [][]whole.Tensor{{{Rows: 2, Cols: 3}, {Rows: 1, Cols: 2}}, {{Rows: 3, Cols: 2}}}
	for name, rule := range map[string]whole.Rule{"lamb": whole.LAMB{LR: .1}, "adafactor": whole.Adafactor{}, "muon": whole.Muon{LR: .1},
		"adamw": optim.AdamW{LR: .1}, "none": nil} {
		var want []float32
		for _, ranks := range []int{1, 3} {
			for stage := 1; stage < 4; stage++ {
				ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
					m, err := zero.New[float32, float32](t.Context(), c, [][]int{{6, 2}, {6}}, &zero.Options{Stage: stage, Sum: true})
					require.NoError(t, err)
					defer m.Close()
					o, err := whole.New(t.Context(), c, m, tensors, func(int, int) whole.Rule { return rule })
					require.NoError(t, err)
					for step := 1; step < 4; step++ {
						for i := range tensors {
							g, err := m.Grads(t.Context(), i)
							require.NoError(t, err)
							for j := range g {
								for k := range g[j] {
									if c.Rank() == 0 {
										g[j][k] = float32(step*k - 3 + j)
									}
								}
							}
							require.NoError(t, m.Reduce(i))
						}
						require.NoError(t, o.Step(t.Context(), step))
					}
					if got := m.Shard(0)[:8]; c.Rank() == 0 && want == nil {
						want = append(want, got...)
					} else if c.Rank() == 0 {
						require.Equal(t, want, got, "%s, %d ranks, stage %d", name, ranks, stage)
					}
				})
			}
		}
	}
}

// Buckets of a Disk, which cut rows, have gradients that are clipped once, although a step goes over them several times.
func TestOptimizerClipsOnDiskOnce(t *testing.T) {
	for _, name := range []string{"lamb", "adafactor", "muon", "mixed"} {
		alike[float32](t, name, 3, zero.Options{Clip: 2}, onDisk)
		alike[ccl.BFloat16](t, name, 2, zero.Options{Clip: 2}, onDisk)
	}
}

func onDisk(t testing.TB, c *ccl.Comm, o *zero.Options) {
	if o.Stage == 0 {
		return
	}
	d, err := offload.New(t.Context(), c, t.TempDir(), &offload.Options{Bucket: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	o.Disk = d
}

// Replicas whose ranks lie otherwise on the hosts, 4 and 2, and 2 and 4, keep the same bits if sums go in rank order.
func TestOptimizerKeepsReplicasAlike(t *testing.T) {
	ccltest.Run(t, 12, func(t testing.TB, world *ccl.Comm) {
		c, over := ccltest.Split(t, world, world.Rank()/6, 0), ccltest.Split(t, world, world.Rank()%6, 0)
		m, err := zero.New[float64, float64](t.Context(), c, [][]int{{600}}, &zero.Options{Stage: 3, Replicas: over})
		require.NoError(t, err)
		defer m.Close()
		o, err := whole.New(t.Context(), c, m, [][]whole.Tensor{{{Rows: 30, Cols: 20}}},
			func(int, int) whole.Rule { return whole.Adafactor{LR: 1, Floor: 1} })
		require.NoError(t, err)
		for step := 1; step < 4; step++ {
			g, err := m.Grads(t.Context(), 0)
			require.NoError(t, err)
			for k := range g[0] {
				g[0][k] = math.Sin(float64(k + 1000*c.Rank() + 7*step)) // whose squares are rounded in a sum
			}
			require.NoError(t, m.Reduce(0))
			require.NoError(t, o.Step(t.Context(), step))
		}
		w := m.Shard(0)
		all := make([]float64, 2*len(w))
		require.NoError(t, ccl.AllGather(t.Context(), over, all, w))
		require.Equal(t, all[:len(w)], all[len(w):])
	}, ccltest.Hosts(3), ccltest.With(ccl.Options{RankOrder: true}))
}
