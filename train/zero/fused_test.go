package zero_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// fused is where a rank's part of a fused matrix stands in the checkpoint.
func fused(name string, l tp.Layout, rank, size int) (list []ckpt.Tensor, err error) {
	boxes, err := l.Boxes(rank, size)
	for _, b := range boxes {
		list = append(list, ckpt.Tensor{Name: name, Shape: []int{l.Rows, l.Cols}, Offset: b.Offset, Size: b.Size, Lo: b.Lo, Hi: b.Hi})
	}
	return list, err
}

// A matrix that is split over tp is saved as one tensor, whole, and loaded on other numbers of ranks at other stages, with the
// optimizer's state: a fused one of queries and fewer keys and values, on more ranks than there are heads of keys, too; and a
// vocabulary that is padded on each number of ranks, without padding.
func TestSplitMatrix(t *testing.T) {
	type grid struct{ split, replicas, stage int }
	const heads, kv, dim, words = 8, 2, 2, 11
	for name, tc := range map[string]struct {
		l     tp.Layout
		grids []grid
	}{
		"fused": {tp.Layout{Rows: (heads + 2*kv) * dim, Cols: 3, Parts: []int{heads * dim, kv * dim, kv * dim}, Unit: dim, ByRows: true, Replicate: true},
			[]grid{{4, 1, 3}, {1, 3, 3}, {2, 2, 1}, {8, 1, 0}, {4, 2, 2}, {1, 1, 0}}},
		"padded": {tp.Layout{Rows: words, Cols: 3, ByRows: true, Pad: true},
			[]grid{{2, 1, 0}, {3, 1, 3}, {2, 2, 1}, {1, 3, 2}, {8, 1, 3}, {1, 1, 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			all, moments := make([]float32, tc.l.Rows*tc.l.Cols), make([]float32, tc.l.Rows*tc.l.Cols)
			for i := range all {
				all[i], moments[i] = float32(i+1), -float32(i+1)
			}
			dir := t.TempDir()
			for step, at := range tc.grids {
				ccltest.Run(t, at.split*at.replicas, func(t testing.TB, c *ccl.Comm) {
					ctx := t.Context()
					grid, err := mesh.New(ctx, c, mesh.Dim{Name: "dp", Size: at.replicas}, mesh.Dim{Name: "tp", Size: at.split})
					require.NoError(t, err)
					defer grid.Close()
					rank := grid.Coord("tp")
					m := newModel[ccl.BFloat16, float32](t, grid.Comm("dp"), [][]int{{2, tc.l.Share(at.split) * tc.l.Cols, 5}}, &zero.Options{Stage: at.stage})
					defer m.Close()
					momenta := zero.State[float32]{Prefix: "m.", Of: shards(m, 1)}
					boxes, err := fused("matrix", tc.l, rank, at.split)
					require.NoError(t, err)
					ts, err := m.TensorsOf(func(_, param int) []ckpt.Tensor {
						switch param {
						case 1:
							return boxes
						case 2: // two tensors, one after the other
							return []ckpt.Tensor{{Name: "a", Shape: []int{3}}, {Name: "b", Shape: []int{2, 1}}}
						}
						return []ckpt.Tensor{{Name: "norm", Shape: []int{2}}}
					}, momenta)
					require.NoError(t, err)
					w, err := tp.Shard(tc.l, all, rank, at.split)
					require.NoError(t, err)
					mo, err := tp.Shard(tc.l, moments, rank, at.split)
					require.NoError(t, err)
					want, state := [][]float32{{1, 2}, w, {3, 4, 5, 6, 7}}, [][]float32{{-1, -2}, mo, {-3, -4, -5, -6, -7}}
					if step > 0 {
						require.NoError(t, ckpt.Load(ctx, c, ckpt.Step(dir, step-1), nil, ts))
					}
					for _, p := range m.Pieces(0) {
						shard, own := m.Shard(0)[p.At:][:p.Hi-p.Lo], momenta.Of[0][p.At:][:p.Hi-p.Lo]
						if step == 0 {
							copy(shard, want[p.Param][p.Lo:p.Hi])
							copy(own, state[p.Param][p.Lo:p.Hi])
							for k, x := range shard {
								if x == 0 { // padding, of which nothing is saved
									shard[k], own[k] = 99, 99
								}
							}
							continue
						}
						require.Equal(t, want[p.Param][p.Lo:p.Hi], shard)
						require.Equal(t, state[p.Param][p.Lo:p.Hi], own)
					}
					require.NoError(t, ckpt.Save(ctx, c, ckpt.Step(dir, step), nil, ts))
				})
			}
			in, err := ckpt.Inspect(ckpt.Step(dir, len(tc.grids)-1))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("[{a F32 [3]} {b F32 [2 1]} {m.a F32 [3]} {m.b F32 [2 1]} {m.matrix F32 [%[1]d 3]} {m.norm F32 [2]} {matrix F32 [%[1]d 3]} {norm F32 [2]}]", tc.l.Rows),
				fmt.Sprint(in.Tensors))
		})
	}
}

func TestTensorsOfRefuses(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		m := newModel[float32, float32](t, c, [][]int{{6}}, nil)
		at := func(name string, lo, hi, n int) ckpt.Tensor {
			return ckpt.Tensor{Name: name, Shape: []int{9}, Offset: []int{0}, Size: []int{n}, Lo: lo, Hi: hi}
		}
		for text, list := range map[string][]ckpt.Tensor{
			`zero: parameter 0 of unit 0 has 6 elements, not those of "": []`:                     {},
			`zero: parameter 0 of unit 0 has 6 elements, not those of "b": [3]`:                   {{Name: "a", Shape: []int{2}}, {Name: "b", Shape: []int{3}}},
			`zero: parameter 0 of unit 0 has 6 elements, not those of "b": [5]`:                   {{Name: "a", Shape: []int{2}}, {Name: "b", Shape: []int{5}}},
			`zero: parameter 0 of unit 0 has 6 elements, not those of "a": [-6]`:                  {{Name: "a", Shape: []int{-6}}},
			`zero: parameter 0 of unit 0 has 6 elements, not those of "b": [2]`:                   {at("a", 0, 4, 4), at("b", 5, 7, 2)},
			`zero: parameter 0 of unit 0 has 6 elements, not those of "a": [4]`:                   {at("a", 0, 3, 4)},
			`zero: parameter 0 of unit 0: "a" and "b" have the same elements`:                     {at("a", 0, 4, 4), at("b", 3, 6, 3)},
			`zero: parameter 0 of unit 0 has 6 elements, not those of "a": [9223372036854775807]`: {at("a", 0, 1<<63-1, 1<<63-1)},
		} {
			_, err := m.TensorsOf(func(int, int) []ckpt.Tensor { return list })
			require.EqualError(t, err, text)
		}
		_, err := m.Tensors(func(int, int) ckpt.Tensor { return at("x", 0, 1, 0) })
		require.ErrorContains(t, err, "zero: parameter 0 of unit 0 has", "nothing, with an element")
		ts, err := m.Tensors(func(int, int) ckpt.Tensor { return at("x", 0, 5, 5) })
		require.NoError(t, err, "the end is padding")
		require.Len(t, ts, 1)
		_, err = m.TensorsOf(nil)
		require.EqualError(t, err, "zero: TensorsOf takes a place")
		ts, err = m.TensorsOf(func(int, int) []ckpt.Tensor { return []ckpt.Tensor{at("a", 0, 2, 2), at("b", 3, 6, 3)} })
		require.NoError(t, err, "what is in no tensor is padding")
		require.Len(t, ts, 2)
		require.NoError(t, m.Close())
		_, err = m.TensorsOf(func(int, int) []ckpt.Tensor { return nil })
		require.Error(t, err)
	})
}

// A fused matrix of four heads of queries and one of keys and of values, on two ranks: a checkpoint has it whole, once.
func ExampleModel_TensorsOf() {
	dir, err := os.MkdirTemp("", "zero")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	l := tp.Layout{Rows: 6, Cols: 1, Parts: []int{4, 1, 1}, ByRows: true, Replicate: true}
	ctx := context.Background()
	ccltest.Example(2, func(c *ccl.Comm) error {
		one, err := c.Split(ctx, c.Rank(), 0) // the replicas of this part, of which there is one
		if err != nil {
			return err
		}
		defer one.Close()
		m, err := zero.New[float32, float32](ctx, one, [][]int{{l.Share(2)}}, &zero.Options{Stage: 3})
		if err != nil {
			return err
		}
		defer m.Close()
		mine, err := tp.Shard(l, []float32{10, 11, 12, 13, 20, 30}, c.Rank(), 2)
		if err != nil {
			return err
		}
		copy(m.Shard(0), mine)
		boxes, err := l.Boxes(c.Rank(), 2)
		if err != nil {
			return err
		}
		ts, err := m.TensorsOf(func(unit, param int) (list []ckpt.Tensor) {
			for _, b := range boxes {
				list = append(list, ckpt.Tensor{Name: "qkv", Shape: []int{6, 1}, Offset: b.Offset, Size: b.Size, Lo: b.Lo, Hi: b.Hi})
			}
			return list
		})
		if err != nil {
			return err
		}
		if err := ckpt.Save(ctx, c, ckpt.Step(dir, 1), nil, ts); err != nil {
			return err
		}
		whole := make([]float32, 6)
		err = ckpt.Load(ctx, c, ckpt.Step(dir, 1), nil, []ckpt.Tensor{{Name: "qkv", Shape: []int{6, 1}, Data: whole}})
		if c.Rank() == 1 {
			fmt.Println(mine, whole)
		}
		return err
	})
	// Output: [12 13 20 30] [10 11 12 13 20 30]
}
