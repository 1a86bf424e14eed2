package zero_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// A vocabulary that is padded on each number of ranks is saved without padding, and loaded on another one, at another stage.
func TestPaddedVocabulary(t *testing.T) {
	const words, width = 11, 3
	dir := t.TempDir()
	l := tp.Layout{Rows: words, Cols: width, ByRows: true, Pad: true}
	for step, at := range []struct{ split, replicas, stage int }{{2, 1, 0}, {3, 1, 3}, {2, 2, 1}, {1, 3, 2}, {8, 1, 3}, {1, 1, 0}} {
		ccltest.Run(t, at.split*at.replicas, func(t testing.TB, c *ccl.Comm) {
			ctx := t.Context()
			grid, err := mesh.New(ctx, c, mesh.Dim{Name: "dp", Size: at.replicas}, mesh.Dim{Name: "tp", Size: at.split})
			require.NoError(t, err)
			defer grid.Close()
			rank := grid.Coord("tp")
			k := l.Share(at.split) * width
			m := newModel[float32, float32](t, grid.Comm("dp"), [][]int{{k, 2}}, &zero.Options{Stage: at.stage})
			defer m.Close()
			momenta := zero.State[float32]{Prefix: "m.", Of: [][]float32{make([]float32, len(m.Shard(0)))}}
			boxes, err := l.Boxes(rank, at.split)
			require.NoError(t, err)
			b := boxes[0]
			place := func(_, param int) ckpt.Tensor {
				if param == 1 {
					return ckpt.Tensor{Name: "norm", Shape: []int{2}}
				}
				return ckpt.Tensor{Name: "wte", Shape: []int{words, width}, Offset: b.Offset, Size: b.Size, Hi: b.Hi}
			}
			ts, err := m.Tensors(place, momenta)
			require.NoError(t, err)
			// each tells f of the elements here, and which of the whole they are: from words*width on they are padding.
			each := func(f func(whole int, w, mo *float32)) {
				for _, p := range m.Pieces(0) {
					for e := p.Lo; p.Param == 0 && e < p.Hi; e++ {
						f(rank*k+e, &m.Shard(0)[p.At+e-p.Lo], &momenta.Of[0][p.At+e-p.Lo])
					}
				}
			}
			name := ckpt.Step(dir, step)
			if step == 0 {
				each(func(whole int, w, mo *float32) { *w, *mo = float32(whole), float32(-whole) })
			} else {
				require.NoError(t, ckpt.Load(ctx, c, ckpt.Step(dir, step-1), nil, ts))
				each(func(whole int, w, mo *float32) {
					if whole >= words*width {
						whole = 0
					}
					require.Equal(t, []float32{float32(whole), float32(-whole)}, []float32{*w, *mo})
				})
			}
			require.NoError(t, ckpt.Save(ctx, c, name, nil, ts))
			if c.Rank() == 0 {
				in, err := ckpt.Inspect(name)
				require.NoError(t, err)
				require.Equal(t, "[{m.norm F32 [2]} {m.wte F32 [11 3]} {norm F32 [2]} {wte F32 [11 3]}]", fmt.Sprint(in.Tensors))
			}
			_, err = m.Tensors(func(_, param int) ckpt.Tensor {
				return ckpt.Tensor{Name: "x", Shape: []int{words, width}, Offset: b.Offset, Size: []int{0, 0}, Hi: 1}
			})
			require.ErrorContains(t, err, "zero: parameter 0 of unit 0 has")
		})
	}
}
