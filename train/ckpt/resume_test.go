package ckpt_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/mesh"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/train/tp"
	"github.com/goccl/goccl/train/zero"
)

// model has units that no number of ranks divides, but for what tp splits.
var model = gpt.Config{Vocab: 13, Context: 6, Width: 12, Heads: 4, Layers: 4}

// layout is how a job is split, and how many micro batches a rank has.
type layout struct{ dp, pp, tp, stage, micro int }

func (l layout) ranks() int { return l.dp * l.pp * l.tp }

// training is one rank of a job in a layout.
type training struct {
	layout
	mesh    *mesh.Mesh
	zero    *zero.Model[float32, float32]
	units   []int // of the model, that this rank has
	m, v    [][]float32
	step    int
	tensors []ckpt.Tensor
}

func begin(t testing.TB, c *ccl.Comm, l layout) *training {
	ctx := t.Context()
	tr := &training{layout: l}
	var err error
	tr.mesh, err = mesh.New(ctx, c, mesh.Dim{Name: "dp", Size: l.dp}, mesh.Dim{Name: "pp", Size: l.pp}, mesh.Dim{Name: "tp", Size: l.tp})
	require.NoError(t, err)
	var lens [][]int
	all := model.Units(l.tp)
	for u := range all {
		stage := 0
		if u > 0 {
			stage = min((u-1)/(model.Layers/l.pp), l.pp-1)
		}
		if stage == tr.mesh.Coord("pp") {
			tr.units, lens = append(tr.units, u), append(lens, all[u])
		}
	}
	tr.zero, err = zero.New[float32, float32](ctx, tr.mesh.Comm("dp"), lens, &zero.Options{Stage: l.stage, Micro: l.micro, Clip: .05})
	require.NoError(t, err)
	for i := range tr.units {
		tr.m, tr.v = append(tr.m, make([]float32, len(tr.zero.Shard(i)))), append(tr.v, make([]float32, len(tr.zero.Shard(i))))
		tr.describe(t, i)
	}
	return tr
}

// describe says what tensors the shard of unit i is made of, with the state of the optimizer that is laid out as it is.
func (tr *training) describe(t testing.TB, i int) {
	u, w := tr.units[i], model.Width
	split := map[int]tp.Layout{}
	if u > 0 && u <= model.Layers {
		split = map[int]tp.Layout{1: {Rows: w, Cols: 3 * w, Blocks: 3}, 2: {Rows: w, Cols: w, ByRows: true}, 4: {Rows: w, Cols: 4 * w}, 5: {Rows: 4 * w, Cols: w, ByRows: true}}
	}
	for _, p := range tr.zero.Pieces(i) {
		x := ckpt.Tensor{Shape: []int{model.Units(1)[u][p.Param]}, Lo: p.Lo, Hi: p.Hi}
		if l, ok := split[p.Param]; ok {
			var err error
			x.Shape, x.Offset, x.Size, err = l.Box(tr.mesh.Coord("tp"), tr.tp)
			require.NoError(t, err)
		}
		for name, data := range map[string][]float32{"": tr.zero.Shard(i), ".m": tr.m[i], ".v": tr.v[i]} {
			x.Name = fmt.Sprintf("%d.%s%s", u, model.Names(u)[p.Param], name)
			x.Data = data[p.At : p.At+p.Hi-p.Lo]
			tr.tensors = append(tr.tensors, x)
		}
	}
}

func (tr *training) load(ctx context.Context, c *ccl.Comm, from string) error {
	if err := ckpt.Load(ctx, c, from, &tr.step, tr.tensors); err != nil {
		return err
	}
	return tr.zero.Loaded(ctx)
}

// train makes a step, in a layout without pp and tp.
func (tr *training) train(t testing.TB, net *gpt.Net[float32], first int) {
	ctx := t.Context()
	tr.step++
	x := make([]float32, net.Len())
	for k := range tr.micro {
		var in []int32
		for i := range 2*model.Context + 1 {
			in = append(in, int32((tr.step*31+(first+k)*7+i*i*(first+k+3))%model.Vocab))
		}
		for u := range tr.units {
			w, err := tr.zero.Params(ctx, u)
			require.NoError(t, err)
			_, err = net.Forward(u, w, 0, x, in[:len(in)-1], in[1:])
			require.NoError(t, err)
			tr.zero.Release(u)
		}
		for u := len(tr.units) - 1; u >= 0; u-- {
			w, err := tr.zero.Params(ctx, u)
			require.NoError(t, err)
			g, err := tr.zero.Grads(ctx, u)
			require.NoError(t, err)
			require.NoError(t, net.Backward(u, w, g, 0, x, in[:len(in)-1], in[1:]))
			tr.zero.Release(u)
			require.NoError(t, tr.zero.Reduce(u))
		}
	}
	require.NoError(t, tr.zero.Step(ctx, func(p zero.Piece, w, g []float32) error {
		h := optim.AdamW{LR: 1e-2, Beta1: .9, Beta2: .95, Eps: 1e-8}
		return optim.Apply(h, tr.step, w, g, tr.m[p.Unit][p.At:p.At+len(w)], tr.v[p.Unit][p.At:p.At+len(w)])
	}))
}

// A training that stops, goes through every layout, and trains on in those whose steps have the same bits, has the bits
// of one that never stopped: parameters and the optimizer's state.
func TestResume(t *testing.T) {
	zero3on4, alone := layout{4, 1, 1, 3, 1}, layout{1, 1, 1, 3, 4}
	stops := []struct {
		layout
		steps int
	}{
		{zero3on4, 4}, {alone, 3}, {layout{2, 1, 1, 1, 1}, 0}, {layout{3, 1, 1, 3, 1}, 0}, {layout{1, 1, 2, 0, 1}, 0}, {layout{1, 2, 1, 0, 1}, 0},
		{layout{2, 2, 2, 1, 1}, 0}, {alone, 2}, {layout{1, 1, 4, 0, 1}, 0}, {layout{3, 1, 2, 3, 1}, 0}, {zero3on4, 3},
	}
	for name, opts := range map[string]func(n int) []ccltest.Option{
		"1 host": func(int) []ccltest.Option { return nil },
		"2 hosts": func(n int) []ccltest.Option {
			return []ccltest.Option{ccltest.Hosts(min(n, 2)), ccltest.With(ccl.Options{RankOrder: true})}
		},
		"processes": func(n int) []ccltest.Option { return []ccltest.Option{ccltest.Processes(n)} },
	} {
		if name == "processes" && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			const where = "GOCCL_CKPT_RESUME" // for the processes of the ranks, which all run this
			dir, total := os.Getenv(where), 0
			if dir == "" {
				dir = t.TempDir()
				t.Setenv(where, dir)
			}
			for i, s := range stops {
				ccltest.Run(t, s.ranks(), func(t testing.TB, c *ccl.Comm) {
					tr := begin(t, c, s.layout)
					net := gpt.NewNet[float32](model, 2, nil)
					if i == 0 {
						for k, u := range tr.units {
							require.NoError(t, tr.zero.Load(t.Context(), k, gpt.Init[float32](model, u, 1), 0))
						}
					} else {
						from, _, err := ckpt.Latest(t.Context(), c, dir)
						require.NoError(t, err)
						require.Equal(t, ckpt.Step(dir, i-1), from)
						require.NoError(t, tr.load(t.Context(), c, from))
						require.Equal(t, total, tr.step)
					}
					for range s.steps {
						tr.train(t, net, c.Rank())
					}
					require.NoError(t, ckpt.Save(t.Context(), c, ckpt.Step(dir, i), tr.step, tr.tensors))
					require.Equal(t, total+s.steps, tr.step)
					require.NoError(t, tr.zero.Close())
					require.NoError(t, tr.mesh.Close())
				}, opts(s.ranks())...)
				total += s.steps
			}
			require.Equal(t, 12, total)
			ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
				never, back := begin(t, c, zero3on4), begin(t, c, zero3on4)
				net := gpt.NewNet[float32](model, 2, nil)
				for k, u := range never.units {
					require.NoError(t, never.zero.Load(t.Context(), k, gpt.Init[float32](model, u, 1), 0))
				}
				for range total {
					never.train(t, net, c.Rank())
				}
				require.NoError(t, back.load(t.Context(), c, ckpt.Step(dir, len(stops)-1)))
				differ, all := 0, 0
				for i := range never.tensors {
					a, b := never.tensors[i].Data.([]float32), back.named(never.tensors[i])
					require.Len(t, b, len(a))
					for k := range a {
						if math.Float32bits(a[k]) != math.Float32bits(b[k]) {
							differ++
						}
					}
					all += len(a)
				}
				require.Zero(t, differ, "of %d", all)
				require.Greater(t, all, model.Params()*3/4-model.Params()/10)
				require.NoError(t, never.zero.Close())
				require.NoError(t, back.zero.Close())
				require.NoError(t, never.mesh.Close())
				require.NoError(t, back.mesh.Close())
			}, opts(4)...)
		})
	}
}

// named is the data of the tensor that is where x is.
func (tr *training) named(x ckpt.Tensor) []float32 {
	for _, y := range tr.tensors {
		if y.Name == x.Name && y.Lo == x.Lo {
			return y.Data.([]float32)
		}
	}
	return nil
}
