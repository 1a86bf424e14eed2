package zero_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/zero"
)

// Hybrid sharding: shards over one dimension of a mesh, replicas over the other. All stages come to the same bits, on
// all ranks, and near those of one rank with the same micro batches, which adds in another order.
func TestReplicas(t *testing.T) {
	want, losses := reference(t, 4, .05)
	worlds := map[string][]ccltest.Option{"goroutines": nil}
	if !testing.Short() {
		worlds["hosts"] = []ccltest.Option{ccltest.Hosts(2)} // replicas over TCP, shards inside a host
	}
	for name, opts := range worlds {
		t.Run(name, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "replica", Size: 2}, mesh.Dim{Name: "shard", Size: 2})
				require.NoError(t, err)
				defer m.Close()
				var first []float32 // stage 0's
				for stage := range 4 {
					o := zero.Options{Stage: stage, Clip: .05, Replicas: m.Comm("replica"), Poison: true}
					tr := newTrainer(t, m.Comm("shard"), o)
					tr.all(t, c, losses, 1e-5)
					w := flat(tr.params(t))
					if stage == 0 {
						first = w
					}
					require.Zero(t, differ(first, w), "stage %d", stage)
					for i, x := range flat(want) {
						require.InDelta(t, x, w[i], 1e-4, "element %d", i)
					}
					require.NoError(t, tr.m.Close())
				}
			}, opts...)
		})
	}
}

// What is wrong with Load on one rank is an error on all ranks of its replica and of the others.
func TestBadLoadOfReplicas(t *testing.T) {
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		m, err := mesh.New(t.Context(), c, mesh.Dim{Name: "replica", Size: 2}, mesh.Dim{Name: "shard", Size: 2})
		require.NoError(t, err)
		defer m.Close()
		z := newTrainer(t, m.Comm("shard"), zero.Options{Stage: 1, Replicas: m.Comm("replica")}).m
		defer z.Close()
		err = z.Load(t.Context(), 0, nil, 0)
		require.ErrorContains(t, err, "unit 0 has ")
		require.Equal(t, 1, strings.Count(err.Error(), "zero: Load: "), err.Error())
	})
}

// The norm goes over the ranks of NormOver, too; what NormOf leaves out counts nowhere. All ranks clip alike.
func TestNormOver(t *testing.T) {
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		m, err := mesh.New(ctx, c, mesh.Dim{Name: "dp", Size: 2}, mesh.Dim{Name: "tp", Size: 2})
		require.NoError(t, err)
		defer m.Close()
		tp := m.Coord("tp")
		for stage := range 4 {
			// Of unit 1 all of tp hold parameter 0 whole: it counts at coordinate 0 alone.
			z, err := zero.New[float32, float32](ctx, m.Comm("dp"), [][]int{{20 + tp}, {3, 5}}, &zero.Options{Stage: stage, Clip: 1,
				NormOver: m.Comm("tp"), NormOf: func(unit, param int) bool { return unit == 0 || param == 1 || tp == 0 }})
			require.NoError(t, err)
			backward(t, z, 2, func(_ int, g [][]float32) {
				for j := range g {
					for k := range g[j] {
						g[j][k] = float32(2 * m.Coord("dp")) // 1 on average
					}
				}
			})
			norm := math.Sqrt(20 + 21 + 3 + 5 + 5)
			require.NoError(t, z.Step(ctx, func(_ zero.Piece, _, g []float32) error {
				for _, x := range g {
					require.InDelta(t, 1/norm, x, 1e-6)
				}
				return nil
			}))
			require.InDelta(t, norm, z.Norm(), 1e-12)
			// A gradient that is no number in what one rank leaves out is heard of by all: no rank applies it.
			for _, odd := range []float64{math.NaN(), math.Inf(-1)} {
				backward(t, z, 2, func(unit int, g [][]float32) {
					if unit == 1 && m.Coord("tp") == 1 && m.Coord("dp") == 0 {
						g[0][2] = float32(odd)
					}
				})
				err := z.Step(ctx, func(zero.Piece, []float32, []float32) error {
					t.Error("a step with gradients that are not finite")
					return nil
				})
				require.ErrorIs(t, err, zero.ErrNotFinite)
				if tp == 1 {
					require.ErrorContains(t, err, "unit 1, part ")
				} else {
					require.ErrorContains(t, err, "units of other ranks of NormOver")
				}
			}
			require.NoError(t, z.Close())
		}
	})
}
