//go:build xla && cgo && linux

package nn_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// untied is a table and a head that is a Linear.
func untied(width, vocab int) *nn.Model {
	return &nn.Model{Loss: nn.CrossEntropy, Units: []nn.Unit{
		{Name: "embed.", Kind: "embed", Forward: func(s *nn.Scope, _ nn.V) nn.V { return s.Embed(s.Tokens(), "tokens", vocab, width) }},
		{Name: "head.", Kind: "head", Forward: func(s *nn.Scope, x nn.V) nn.V { return s.Linear(x, "out", vocab, true) }},
	}}
}

// Loss and gradients by chunks are those of all tokens at once, whether chunks divide them or not, with tokens that do not count,
// label smoothing and the z-loss, a tied head, and adapters beside it; and no array has all logits.
func TestChunks(t *testing.T) {
	lora := &nn.LoRA{Rank: 2, Scale: 2, Has: func(name string) bool { return name == "head.out" }}
	for _, tc := range []struct {
		name  string
		model func() *nn.Model
		loss  func(*nn.Scope, nn.V) nn.V
		lora  *nn.LoRA
		act   hlo.Type
	}{
		{"tied", func() *nn.Model { return tiny(0, same) }, nn.CrossEntropy, nil, hlo.F32},
		{"smoothed", func() *nn.Model { return untied(8, 11) }, nn.Smoothed(.1, .01), nil, hlo.F64},
		{"adapters", func() *nn.Model { return untied(8, 11) }, nn.CrossEntropy, lora, hlo.F32},
	} {
		gradients := func(chunk int) (string, [][]float64) {
			m := tc.model()
			m.Loss, m.LoRA, m.Act, m.Chunk = tc.loss, tc.lora, tc.act, chunk
			w := write(t, m)
			p := w.pass()
			l := m.WriteTail(p, m.Write(p, 0, nil))
			g := append(hlo.Grad(l, w.args...), l)
			return w.text(g...), w.run(g...)
		}
		text, whole := gradients(0)
		require.Contains(t, text, "tensor<2x6x11xf")
		for _, chunk := range []int{1, 5, 12, 100} {
			t.Run(fmt.Sprintf("%s/%d", tc.name, chunk), func(t *testing.T) {
				text, got := gradients(chunk)
				bound := 1e-6
				if chunk == 1 && tc.act == hlo.F32 { // other products: of a matrix and a vector
					bound = 3e-6
				}
				near(t, whole, got, bound)
				if chunk < 11 {
					for _, all := range []string{"tensor<2x6x11xf", "tensor<12x11xf", "tensor<1x12x11xf"} {
						require.NotContains(t, text, all)
					}
				}
			})
		}
	}
}

// Sums are those over all tokens, of more than a loss, and what does not count counts nowhere.
func TestSums(t *testing.T) {
	var all [][]float64
	for _, chunk := range []int{0, 5} {
		m := tiny(0, same)
		m.Chunk = chunk
		w := write(t, m)
		p := w.pass()
		x := m.Write(p, 0, nil)
		sums := m.Sums(p, x, 2, func(p *nn.Pass, y nn.V) []nn.V {
			counts := p.In[1].Cmp("GE", p.Fn.Const(hlo.I32, 0))
			top := y.MaxLast().Reshape(counts.Dims()...)
			return []nn.V{m.LossSum(p, y), hlo.If(counts, top, p.Fn.Const(hlo.F32, 0)).SumAll()}
		})
		mean := m.WriteTail(p, x)
		all = append(all, w.run(sums[0], sums[1], mean, mean.MulC(10))...) // 10 of 12 count
	}
	near(t, all[:4], all[4:], 1e-6)
	near(t, [][]float64{{all[0][0]}}, all[3:4], 1e-6)
}

// The compiler's own account: beside chunks of 64 of 4,096 tokens, a step needs a small part of the memory that it needs for
// the logits of all, 128 MiB in float32.
func TestChunksNeedLessMemory(t *testing.T) {
	const tokens, width, vocab = 4096, 16, 8192
	need := func(chunk int) int64 {
		m := untied(width, vocab)
		m.Chunk = chunk
		units, _, err := m.Params(batch(1, tokens)...)
		require.NoError(t, err)
		var f hlo.Func
		p, args := &nn.Pass{Fn: &f, Has: map[string]nn.V{}}, []nn.V{}
		for _, unit := range units {
			for _, q := range unit {
				args = append(args, f.Arg(q.Type, q.Dims...))
				p.Has[q.Name] = args[len(args)-1]
			}
		}
		p.In = []nn.V{f.Arg(hlo.I32, 1, tokens), f.Arg(hlo.I32, 1, tokens)}
		loss := m.WriteTail(p, m.Write(p, 0, nil))
		text, err := f.Text("step", append(hlo.Grad(loss, args...), loss)...)
		require.NoError(t, err)
		program, err := xlatest.Client(t).Compile(text, nil)
		require.NoError(t, err)
		defer program.Free()
		return program.Stats().Temp
	}
	whole, chunked := need(0), need(64)
	t.Logf("%d bytes of temporary memory without chunks, %d with chunks of 64", whole, chunked)
	require.Greater(t, whole, int64(4*tokens*vocab))
	require.Less(t, chunked, whole/8)
}
