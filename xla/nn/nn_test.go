package nn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// tiny is a model with attention, a tied head, and layers that eps may make unequal.
func tiny(layers int, eps func(i int) float64) *nn.Model {
	const width, heads, vocab = 8, 2, 11
	m := &nn.Model{Loss: nn.CrossEntropy}
	m.Units = append(m.Units, nn.Unit{Name: "embed.", Kind: "embed", Forward: func(s *nn.Scope, _ nn.V) nn.V {
		return s.Dropout(s.Embed(s.Tokens(), "tokens", vocab, width), .1)
	}})
	for i := range layers {
		m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("layers.%d.", i), Kind: "layer", Forward: func(s *nn.Scope, x nn.V) nn.V {
			b, t := x.Dims()[0], x.Dims()[1]
			y := s.RMSNorm(x, "norm", eps(i))
			part := func(name string, n int) nn.V {
				return s.Linear(y, name, n*width/heads, true).Reshape(b, t, n, width/heads)
			}
			freq := []float64{1, .1}
			q, k, v := s.Rotate(part("q", heads), freq, 1), s.Rotate(part("k", 1), freq, 1), part("v", 1)
			x = x.Add(s.Dropout(s.Linear(s.Attend(q, k, v, nn.Attention{Dropout: .1}), "o", width, false), .1).As(x.Type()))
			return x.Add(s.Conv1D(nn.GELU(s.Linear(s.LayerNorm(x, "norm2", eps(i), true), "up", 16, false)), "down", width, true).As(x.Type()))
		}})
	}
	m.Units = append(m.Units, nn.Unit{Name: "head.", Kind: "head", Uses: []int{0}, Forward: func(s *nn.Scope, x nn.V) nn.V {
		return hlo.Dot(s.RMSNorm(x, "norm", 1e-5), s.Of("embed.tokens.weight").As(s.Act()), []int{2}, []int{1}, nil, nil)
	}})
	return m
}

func same(int) float64 { return 1e-5 }

func batch(b, t int) []hlo.Array {
	a := hlo.Array{Type: hlo.I32, Dims: []int{b, t}}
	return []hlo.Array{a, a}
}

func TestParams(t *testing.T) {
	m := tiny(2, same)
	params, outs, err := m.Params(batch(3, 5)...)
	require.NoError(t, err)
	require.Len(t, params, 4)
	require.Equal(t, nn.Param{Name: "embed.tokens.weight", Dims: []int{11, 8}, Type: hlo.F32, Std: .02}, params[0][0])
	require.Equal(t, nn.Param{Name: "layers.1.down.weight", Dims: []int{16, 8}, Type: hlo.F32, Std: .02, Turned: true}, params[2][11])
	require.Equal(t, []int{3, 5, 11}, outs[3].Dims)
	require.Equal(t, "layer", m.Kind(2))
	require.False(t, m.Frozen(params[0][0]))
	tokens, wanted := m.Vocabulary()
	require.Equal(t, []int{11, 11}, []int{tokens, wanted})
	m.Loss = func(_ *nn.Scope, x nn.V) nn.V { return x.Mul(x).SumAll() }
	_, _, err = m.Params(batch(3, 5)...)
	require.NoError(t, err)
	tokens, wanted = m.Vocabulary()
	require.Equal(t, []int{11, 0}, []int{tokens, wanted}, "a loss that wants no token")
}

// Adapters have a type of their own; units that differ in their adapters alone have programs of their own.
func TestParamsOfLoRA(t *testing.T) {
	m := tiny(3, same)
	m.Type = hlo.BF16
	m.LoRA = &nn.LoRA{Rank: 2, Scale: 1, Has: func(name string) bool { return name == "layers.1.q" || name == "layers.1.down" }}
	params, _, err := m.Params(batch(3, 5)...)
	require.NoError(t, err)
	require.Equal(t, []string{"layer", "layer_1", "layer"}, []string{m.Kind(1), m.Kind(2), m.Kind(3)})
	var adapters []string
	for _, p := range params[2] {
		require.Equal(t, p.Adapter, !m.Frozen(p))
		if p.Adapter {
			require.Equal(t, hlo.F32, p.Type)
			adapters = append(adapters, fmt.Sprint(p.Name, p.Dims))
		} else {
			require.Equal(t, hlo.BF16, p.Type)
		}
	}
	require.Equal(t, []string{"layers.1.q.lora_A.weight[2 8]", "layers.1.q.lora_B.weight[8 2]", "layers.1.down.lora_A.weight[2 16]", "layers.1.down.lora_B.weight[8 2]"}, adapters)
}

// Units of one kind that differ are refused, as is a name that two units have.
func TestRefused(t *testing.T) {
	_, _, err := tiny(2, func(i int) float64 { return 1e-5 * float64(1+i) }).Params(batch(3, 5)...)
	require.ErrorContains(t, err, `units "layers.0." and "layers.1." are of one kind, "layer", but differ`)
	m := tiny(2, same)
	m.Units[2].Name = "layers.0."
	_, _, err = m.Params(batch(3, 5)...)
	require.ErrorContains(t, err, "parameter layers.0.norm.weight is one of another unit, too")
	m = tiny(2, same)
	m.LoRA = &nn.LoRA{Rank: 2}
	_, _, err = m.Params(batch(3, 5)...)
	require.ErrorContains(t, err, "LoRA: Has is nil")
	m.LoRA.Has, m.LoRA.Rank = func(string) bool { return true }, 0
	_, _, err = m.Params(batch(3, 5)...)
	require.ErrorContains(t, err, "LoRA: rank 0")
	m.LoRA.Has = func(string) bool { return false }
	_, _, err = m.Params(batch(3, 5)...)
	require.EqualError(t, err, "nn: LoRA: Has has none of the model's Linears, so there is nothing to train")
	m = tiny(2, same)
	m.Loss = func(s *nn.Scope, x nn.V) nn.V { return x.Add(s.Fn.Const(hlo.F32, 0).To(2)) }
	_, _, err = m.Params(batch(3, 5)...)
	require.ErrorContains(t, err, "nn: the loss: ")
	m = tiny(2, same)
	m.Units[3].Uses = nil
	_, _, err = m.Params(batch(3, 5)...)
	require.ErrorContains(t, err, "no unit that it uses has a parameter embed.tokens.weight")
	for _, tc := range []struct{ uses, of []int }{{[]int{0, 0}, []int{0, 1}}, {[]int{0, 1}, []int{0, 0}}} {
		m = &nn.Model{}
		for u, names := range [][]string{{"a", "b"}, {"b", "a"}} {
			m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("in%d.", u), Kind: fmt.Sprintf("in%d", u), Forward: func(s *nn.Scope, _ nn.V) nn.V {
				return s.Embed(s.Tokens(), names[0], 8, 8).Add(s.Embed(s.Tokens(), names[1], 8, 8))
			}})
		}
		for i, u := range tc.uses {
			name := fmt.Sprintf("in%d.%s.weight", u, []string{"a", "b"}[tc.of[i]])
			m.Units = append(m.Units, nn.Unit{Name: fmt.Sprintf("tied%d.", i), Kind: "tied", Uses: []int{u}, Forward: func(s *nn.Scope, x nn.V) nn.V {
				return hlo.Dot(x, s.Of(name), []int{2}, []int{0}, nil, nil)
			}})
		}
		_, _, err = m.Params(batch(3, 5)...)
		require.ErrorContains(t, err, `units "tied0." and "tied1." are of one kind, "tied", but differ`)
	}
}

// What cannot be computed by chunks is an error of the program.
func TestChunksRefused(t *testing.T) {
	for want, change := range map[string]func(m *nn.Model, p *nn.Pass){
		"nn: chunks of -1 tokens": func(m *nn.Model, _ *nn.Pass) { m.Chunk = -1 },
		`nn: unit "head." cannot be computed by chunks: it is given no [B,T,...] for [B,T] wanted tokens`: func(_ *nn.Model, p *nn.Pass) {
			p.In[1] = p.Fn.Arg(hlo.I32, 3, 2)
		},
		"parameter head.norm.weight is not given": func(_ *nn.Model, p *nn.Pass) { delete(p.Has, "head.norm.weight") },
		`nn: unit "head." draws random numbers, so it cannot be computed by chunks`: func(m *nn.Model, p *nn.Pass) {
			p.Key, m.Units[2].Forward = p.Fn.Arg(hlo.U64, 2), func(s *nn.Scope, x nn.V) nn.V { return s.Dropout(x, .5) }
		},
	} {
		m := tiny(1, same)
		m.Chunk = 2
		params, _, err := m.Params(batch(2, 3)...)
		require.NoError(t, err)
		var f hlo.Func
		p := &nn.Pass{Fn: &f, Has: map[string]nn.V{}, In: []nn.V{f.Arg(hlo.I32, 2, 3), f.Arg(hlo.I32, 2, 3)}}
		for _, q := range slices.Concat(params...) {
			p.Has[q.Name] = f.Arg(q.Type, q.Dims...)
		}
		change(m, p)
		_, err = f.Text("t", m.WriteTail(p, f.Arg(hlo.F32, 2, 3, 8)))
		require.ErrorContains(t, err, want)
	}
}

// A cache with room for more tokens than the model generates, or for fewer than come, is refused.
func TestRoom(t *testing.T) {
	m := tiny(1, same)
	m.Room = 8
	params, _, err := m.Params(batch(2, 9)...)
	require.NoError(t, err, "rows that are not generated may be longer")
	for room, want := range map[int]string{8: "", 9: "a cache with room for 9 tokens: the model generates rows of at most 8",
		2: "a cache with room for 2 tokens gets 3"} {
		var f hlo.Func
		p := &nn.Pass{Fn: &f, Has: map[string]nn.V{}, In: []nn.V{f.Arg(hlo.I32, 2, 3)}, Next: &nn.Next{Pos: f.Arg(hlo.I32, 1), Room: room}}
		for _, q := range params[1] {
			p.Has[q.Name] = f.Arg(q.Type, q.Dims...)
		}
		_, err := f.Text("t", m.Write(p, 1, f.Arg(hlo.F32, 2, 3, 8)))
		if want == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, `unit "layers.0.": `+want)
		}
	}
}

// A cache has no tokens behind those that it is given, so nothing attends to them.
func TestFullIsNotGenerated(t *testing.T) {
	for _, a := range []nn.Attention{{Full: true}, {Full: true, Window: 3}} {
		m := &nn.Model{Units: []nn.Unit{{Name: "a.", Kind: "a", Forward: func(s *nn.Scope, _ nn.V) nn.V {
			x := s.Fn.Const(hlo.F32, 1).To(2, 3, 2, 2)
			return s.Attend(x, x, x, a)
		}}}}
		var f hlo.Func
		p := &nn.Pass{Fn: &f, In: []nn.V{f.Arg(hlo.I32, 2, 3)}, Next: &nn.Next{Pos: f.Arg(hlo.I32, 1), Room: 8}}
		_, err := f.Text("t", m.Write(p, 0, nil))
		require.ErrorContains(t, err, `unit "a.": Attend: Full, in generation`)
	}
}

// Layers whose adapters differ in rank, or in scale alone, have programs of their own.
func TestOwnRanks(t *testing.T) {
	m := tiny(3, same)
	m.LoRA = &nn.LoRA{Has: func(string) bool { return true }, Own: func(name string) (int, float64) {
		return map[byte]int{'0': 2, '1': 3, '2': 2}[name[len("layers.")]], map[byte]float64{'0': 1, '1': 1, '2': 5}[name[len("layers.")]]
	}}
	params, _, err := m.Params(batch(3, 5)...)
	require.NoError(t, err)
	for u, rank := range map[int]int{1: 2, 2: 3, 3: 2} {
		for _, p := range params[u] {
			if p.Adapter {
				require.Contains(t, p.Dims, rank, p.Name)
			}
		}
	}
	require.Equal(t, []string{"layer", "layer_1", "layer_2"}, []string{m.Kind(1), m.Kind(2), m.Kind(3)})
}

// A parameter that is missing, or has other dimensions, is named with its unit and the line of the model.
func TestWriteErrors(t *testing.T) {
	for _, again := range []bool{false, true} {
		for _, tc := range []struct {
			dims []int
			want string
		}{
			{nil, "parameter embed.tokens.weight is not given"},
			{[]int{8, 11}, "parameter embed.tokens.weight: [8 11] is given, the unit has [11 8]"},
		} {
			var f hlo.Func
			p := &nn.Pass{Fn: &f, Again: again, Has: map[string]nn.V{}, In: []nn.V{f.Arg(hlo.I32, 2, 3), f.Arg(hlo.I32, 2, 3)}}
			if tc.dims != nil {
				p.Has["embed.tokens.weight"] = f.Arg(hlo.F32, tc.dims...)
			}
			_, err := f.Text("t", tiny(1, same).Write(p, 0, nil))
			require.ErrorContains(t, err, tc.want)
			require.ErrorContains(t, err, `unit "embed."`)
			require.ErrorContains(t, err, "hlo: nn_test.go:")
		}
	}
}
