//go:build xla && cgo && linux

package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// The batch of the tests: rows of tokens, and what is wanted.
const rows, length = 2, 6

var (
	some = []int32{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8}
	want = []int32{1, 4, 1, 5, 9, 2, 6, 5, -1, 5, 8, -1}
)

// writing is a program in the making, with the initial parameters of a model as arguments.
type writing struct {
	t      *testing.T
	f      hlo.Func
	m      *nn.Model
	params []nn.Param
	args   []nn.V
	has    map[string]nn.V
}

func write(t *testing.T, m *nn.Model) *writing {
	w := &writing{t: t, m: m, has: map[string]nn.V{}}
	units, _, err := m.Params(batch(rows, length)...)
	require.NoError(t, err)
	w.params = slices.Concat(units...)
	for _, p := range w.params {
		v := w.f.Arg(p.Type, p.Dims...)
		w.args, w.has[p.Name] = append(w.args, v), v
	}
	return w
}

func (w *writing) ints(x []int32, dims ...int) nn.V {
	f := make([]float64, len(x))
	for i := range x {
		f[i] = float64(x[i])
	}
	return w.f.Array(hlo.I32, f, dims...)
}

func (w *writing) pass() *nn.Pass {
	return &nn.Pass{Fn: &w.f, Has: w.has, In: []nn.V{w.ints(some, rows, length), w.ints(want, rows, length)}}
}

func (w *writing) forward(p *nn.Pass) (x nn.V) {
	for u := range w.m.Units {
		x = w.m.Write(p, u, x)
	}
	return x
}

// key is a key of dropout.
func (w *writing) key(n float64) nn.V { return w.f.Array(hlo.U64, []float64{n, 5}, 2) }

func (w *writing) text(results ...nn.V) string {
	text, err := w.f.Text("t", results...)
	require.NoError(w.t, err)
	return text
}

// run runs the program on the initial parameters.
func (w *writing) run(results ...nn.V) (out [][]float64) {
	for i := range results {
		results[i] = results[i].As(hlo.F64)
	}
	c := xlatest.Client(w.t)
	p, err := c.Compile(w.text(results...), nil)
	require.NoError(w.t, err)
	defer p.Free()
	var in []*xla.Buffer
	for _, p := range w.params {
		x := p.Initial(1)
		for i := range x { // larger than models begin with: more is to be seen
			x[i] *= 8
		}
		b, err := xla.Put(c, x, p.Dims...)
		require.NoError(w.t, err)
		in = append(in, b)
	}
	got, err := p.Run(0, in...)
	require.NoError(w.t, err)
	for _, b := range got {
		x := make([]float64, b.Len())
		require.NoError(w.t, xla.Get(b, x))
		out = append(out, x)
	}
	require.NoError(w.t, xla.FreeAll(append(in, got...)...))
	return out
}

// Gradients of products are products, two for each; and once more forward where units are computed again, with the same dropped.
func TestGradients(t *testing.T) {
	const layers, each, outside = 1, 8, 1 // q, k, v, o, up, down, and two of attention; the head
	count := func(again bool, key float64) (forward, all int, out [][]float64) {
		w := write(t, tiny(layers, same))
		p := w.pass()
		if p.Again = again; key > 0 {
			p.Key = w.key(key)
		}
		loss := w.m.WriteLoss(p, w.forward(p))
		forward = strings.Count(w.text(loss), "stablehlo.dot_general")
		g := append(hlo.Grad(loss, w.args...), loss)
		return forward, strings.Count(w.text(g...), "stablehlo.dot_general"), w.run(g...)
	}
	forward, all, plain := count(false, 0)
	require.Equal(t, layers*each+outside, forward)
	require.Equal(t, 3*forward, all)
	_, all, again := count(true, 0)
	require.Equal(t, 4*forward, all)
	near(t, plain, again, 1e-6)
	_, _, dropped := count(false, 1)
	_, _, droppedAgain := count(true, 1)
	near(t, dropped, droppedAgain, 1e-6)
	_, _, other := count(false, 2)
	last := len(plain) - 1
	require.NotEqual(t, dropped[last], other[last])
	require.NotEqual(t, dropped[last], plain[last])
}

func near(t *testing.T, want, got [][]float64, bound float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		require.Len(t, got[i], len(want[i]))
		for k := range want[i] {
			require.InDelta(t, want[i][k], got[i][k], bound*(1+math.Abs(want[i][k])), "result %d, element %d", i, k)
		}
	}
}

// Dropout keeps the mean: what is left is divided by how much of it is left. Draws differ, and are equal for equal keys.
func TestDropout(t *testing.T) {
	const n = 1 << 16
	m := &nn.Model{Units: []nn.Unit{{Forward: func(s *nn.Scope, _ nn.V) nn.V {
		x := s.Fn.Const(hlo.F32, 1).To(n)
		return hlo.Cat(0, s.Dropout(x, .25), s.Dropout(x, .25))
	}}}}
	w := write(t, m)
	var out []nn.V
	for _, key := range []float64{7, 7, 8, 0} {
		p := w.pass()
		if key > 0 {
			p.Key = w.key(key)
		}
		out = append(out, w.forward(p))
	}
	x := w.run(out...)
	require.Equal(t, x[0], x[1])
	kept := 0.
	both := [3][2]int{} // of the first draw with key 7: beside the second, and beside that with key 8
	for i, v := range x[0][:n] {
		if v != 0 {
			require.Equal(t, float64(float32(1/.75)), v)
			kept++
			both[0][0]++
			if x[0][n+i] != 0 {
				both[1][0]++
			}
			if x[2][i] != 0 {
				both[2][0]++
			}
		}
	}
	require.InDelta(t, .75, kept/n, .01) // 6 deviations
	require.InDelta(t, .75, float64(both[1][0])/kept, .012)
	require.InDelta(t, .75, float64(both[2][0])/kept, .012)
	require.Equal(t, slices.Repeat([]float64{1}, 2*n), x[3])
}

// A token's logits are the same whether all tokens come at once, or the first ones and then one by one, for rows that stand at different
// positions, too.
func TestCache(t *testing.T) {
	w := write(t, tiny(2, same))
	whole := w.forward(w.pass())
	results := []nn.V{whole}
	for _, lengths := range [][]int32{{3}, {2, 4}} { // of all rows, of each
		caches := make([][]nn.V, len(w.m.Units))
		step := func(tokens nn.V, pos []int32) nn.V {
			n := &nn.Next{Pos: w.ints(pos, len(pos)), Room: 9}
			p := &nn.Pass{Fn: &w.f, Has: w.has, In: []nn.V{tokens}, Next: n}
			var x nn.V
			for u := range w.m.Units {
				n.Cache = caches[u]
				x = w.m.Write(p, u, x)
				caches[u] = n.Kept
			}
			return x
		}
		most := int(slices.Max(lengths))
		in := w.pass().In[0]
		step(in.Cut(1, 0, most), make([]int32, len(lengths)))
		var list []nn.V
		for k := range int32(2) {
			pos := make([]int32, len(lengths))
			var token []nn.V
			for i := range rows {
				at := lengths[i%len(lengths)] + k
				pos[i%len(lengths)] = at
				token = append(token, in.Cut(0, i, i+1).Cut(1, int(at), int(at)+1))
			}
			list = append(list, step(hlo.Cat(0, token...), pos))
		}
		results = append(results, hlo.Cat(1, list...))
	}
	out := w.run(results...)
	row := func(x []float64, t, i, k int) []float64 { return x[(i*t+k)*11 : (i*t+k+1)*11] }
	for k := range 2 {
		for i := range rows {
			near(t, [][]float64{row(out[0], length, i, 3+k)}, [][]float64{row(out[1], 2, i, k)}, 1e-5)
			near(t, [][]float64{row(out[0], length, i, 2+2*i+k)}, [][]float64{row(out[2], 2, i, k)}, 1e-5)
		}
	}
}

// Adapters begin with no effect, and alone have gradients that matter; a bfloat16 model is near that of float32.
func TestLoRA(t *testing.T) {
	m := tiny(2, same)
	base := write(t, m)
	p := base.pass()
	loss := base.run(m.WriteLoss(p, base.forward(p)))[0][0]
	m.LoRA = &nn.LoRA{Rank: 2, Scale: 2, Has: func(name string) bool { return strings.HasSuffix(name, ".q") || strings.HasSuffix(name, ".down") }}
	m.Act = hlo.BF16
	w := write(t, m)
	p = w.pass()
	l := m.WriteLoss(p, w.forward(p))
	out := w.run(append(hlo.Grad(l, w.args...), l)...)
	require.InDelta(t, loss, out[len(out)-1][0], 5e-3)
	moved := 0
	for i, q := range w.params {
		if strings.HasSuffix(q.Name, "lora_B.weight") {
			require.NotZero(t, slices.Max(out[i]), q.Name)
			moved++
		}
		if strings.HasSuffix(q.Name, "lora_A.weight") {
			require.Zero(t, slices.Max(out[i]), q.Name) // since B is
		}
	}
	require.Equal(t, 4, moved)
}

// The loss is the mean over the tokens that count, and 0 if none does.
func TestCrossEntropy(t *testing.T) {
	m := &nn.Model{Units: []nn.Unit{{Forward: func(s *nn.Scope, _ nn.V) nn.V {
		return s.Fn.Array(hlo.F32, []float64{0, 0, 5, 0}, 1, 2, 2)
	}}}, Loss: nn.CrossEntropy}
	w := &writing{t: t}
	var results []nn.V
	for _, want := range [][]float64{{1, 0}, {0, -1}, {-100, -1}} {
		p := &nn.Pass{Fn: &w.f, In: []nn.V{w.f.Array(hlo.I32, []float64{0, 0}, 1, 2), w.f.Array(hlo.I32, want, 1, 2)}}
		results = append(results, m.WriteLoss(p, m.Write(p, 0, nil)))
	}
	small := math.Log1p(math.Exp(-5))
	near(t, [][]float64{{(math.Ln2 + small) / 2}, {math.Ln2}, {0}}, w.run(results...), 1e-6)
}

// Smoothed has cross_entropy(label_smoothing=.1) of torch, and the square of the logarithm of the sum.
func TestSmoothed(t *testing.T) {
	logits := []float64{.3, -1.2, 2, .7}
	m := &nn.Model{Units: []nn.Unit{{Forward: func(s *nn.Scope, _ nn.V) nn.V {
		return s.Fn.Array(hlo.F32, logits, 1, 1, 4)
	}}}}
	w := &writing{t: t}
	var results []nn.V
	for _, loss := range []func(*nn.Scope, nn.V) nn.V{nn.Smoothed(.1, 0), nn.Smoothed(0, .01)} {
		m.Loss = loss
		p := &nn.Pass{Fn: &w.f, In: []nn.V{w.f.Array(hlo.I32, []float64{0}, 1, 1), w.f.Array(hlo.I32, []float64{2}, 1, 1)}}
		results = append(results, m.WriteLoss(p, m.Write(p, 0, nil)))
	}
	sum := 0.
	for _, x := range logits {
		sum += math.Exp(x)
	}
	all := math.Log(sum)
	near(t, [][]float64{{0.5577798534134}, {all - 2 + .01*all*all}}, w.run(results...), 1e-6)
}

// A token attends to those of its window, and of all where attention is full; a fused kernel may take its place.
func TestAttention(t *testing.T) {
	const tokens = 4
	attend := func(a nn.Attention) func(s *nn.Scope, _ nn.V) nn.V {
		return func(s *nn.Scope, _ nn.V) nn.V {
			q := s.Fn.Const(hlo.F32, 0).To(1, tokens, 2, 2) // to all alike
			v := s.Fn.Array(hlo.F32, []float64{1, 2, 3, 4}, 1, tokens, 1, 1).To(1, tokens, 1, 2)
			return s.Attend(q, v, v, a).Cut(2, 0, 1)
		}
	}
	m := &nn.Model{Units: []nn.Unit{
		{Name: "a", Kind: "a", Forward: attend(nn.Attention{})}, {Name: "b", Kind: "b", Forward: attend(nn.Attention{Full: true})},
		{Name: "c", Kind: "c", Forward: attend(nn.Attention{Window: 2})}, {Name: "d", Kind: "d", Forward: attend(nn.Attention{Full: true, Window: 3})},
	}}
	w := &writing{t: t, m: m}
	p := &nn.Pass{Fn: &w.f, In: []nn.V{w.f.Array(hlo.I32, make([]float64, tokens), 1, tokens)}}
	var results []nn.V
	for u := range m.Units {
		results = append(results, m.Write(p, u, nil))
	}
	p.Attention = func(q, k, v nn.V, a nn.Attention) nn.V {
		require.Equal(t, nn.Attention{Scale: 1 / math.Sqrt(2)}, a)
		return q.AddC(9)
	}
	results = append(results, m.Write(p, 0, nil))
	p.Attention = func(q, k, v nn.V, a nn.Attention) nn.V { return nil }
	results = append(results, m.Write(p, 0, nil))
	out := w.run(results...)
	near(t, [][]float64{{1, 1.5, 2, 2.5}, {2.5, 2.5, 2.5, 2.5}, {1, 1.5, 2.5, 3.5}, {2.5, 2.5, 2.5, 3}, {9, 9, 9, 9}, {1, 1.5, 2, 2.5}}, out, 1e-6)
}
