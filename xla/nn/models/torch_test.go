//go:build xla && cgo && linux

package models_test

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// The data that test/peers/transformers/models.py trains on.
const rows, tokens, steps = 4, 16, 12

// reference is what transformers has made of a model.
type reference struct {
	Losses, Logits, After []float64
	Generated             []int32
}

// runner is a model with its parameters on a device.
type runner struct {
	t      testing.TB
	c      *xla.Client
	model  *nn.Model
	params []nn.Param
	live   []*xla.Buffer // parameters
}

func put[T ccl.Number](r *runner, data []T, dims ...int) *xla.Buffer {
	b, err := xla.Put(r.c, data, dims...)
	require.NoError(r.t, err)
	return b
}

func get(t testing.TB, b *xla.Buffer) []float32 {
	x := make([]float32, b.Len())
	require.NoError(t, xla.Get(b, x))
	return x
}

// args are arguments for the parameters.
func (r *runner) args(f *hlo.Func) (list []nn.V, has map[string]nn.V) {
	has = map[string]nn.V{}
	for _, p := range r.params {
		v := f.Arg(hlo.F32, p.Dims...)
		list, has[p.Name] = append(list, v), v
	}
	return list, has
}

// forward writes all units. caches are those of each unit in the step of generation before.
func (r *runner) forward(p *nn.Pass, caches [][]nn.V) (out nn.V, kept []nn.V, counts []int) {
	for u := range r.model.Units {
		if p.Next != nil && caches != nil {
			p.Next.Cache = caches[u]
		}
		out = r.model.Write(p, u, out)
		if p.Next != nil {
			kept, counts = append(kept, p.Next.Kept...), append(counts, len(p.Next.Kept))
		}
	}
	return out, kept, counts
}

func (r *runner) compile(f *hlo.Func, results ...nn.V) func(in ...*xla.Buffer) []*xla.Buffer {
	text, err := f.Text("model", results...)
	require.NoError(r.t, err)
	p, err := r.c.Compile(text, xla.Flags{"xla_backend_optimization_level": 0}) // most of the time is compiling
	require.NoError(r.t, err)
	r.t.Cleanup(func() { require.NoError(r.t, p.Free()) })
	return func(in ...*xla.Buffer) []*xla.Buffer {
		out, err := p.Run(0, in...)
		require.NoError(r.t, err)
		return out
	}
}

// train makes the steps, by AdamW as torch has it, and returns the losses.
func (r *runner) train(data [][2][]int32) (losses []float64) {
	var f hlo.Func
	params, has := r.args(&f)
	first, _ := r.args(&f)
	second, _ := r.args(&f)
	pass := &nn.Pass{Fn: &f, Has: has, Again: true}
	for range 2 {
		pass.In = append(pass.In, f.Arg(hlo.I32, rows, tokens))
	}
	h := f.Arg(hlo.F32, 2) // lr / (1 - b1^t), 1 / (1 - b2^t)
	scale := func(i int) nn.V { return h.Cut(0, i, i+1).Reshape() }
	const lr, b1, b2, decay = 1e-3, .9, .95, .1
	out, _, _ := r.forward(pass, nil)
	loss := r.model.WriteLoss(pass, out)
	results := [3][]nn.V{}
	for i, g := range hlo.Grad(loss, params...) {
		w := params[i]
		if w.Rank() > 1 {
			w = w.MulC(1 - lr*decay)
		}
		m, v := first[i].MulC(b1).Add(g.MulC(1-b1)), second[i].MulC(b2).Add(g.Mul(g).MulC(1-b2))
		w = w.Sub(m.Mul(scale(0)).Div(v.Mul(scale(1)).Sqrt().AddC(1e-6)))
		for k, x := range []nn.V{w, m, v} {
			results[k] = append(results[k], x)
		}
	}
	run := r.compile(&f, append(slices.Concat(results[:]...), loss)...)
	var state []*xla.Buffer
	for range 2 {
		for _, p := range r.params {
			state = append(state, put(r, make([]float32, p.Len()), p.Dims...))
		}
	}
	for s, d := range data {
		scales := []float32{float32(lr / (1 - math.Pow(b1, float64(s+1)))), float32(1 / (1 - math.Pow(b2, float64(s+1))))}
		more := []*xla.Buffer{put(r, d[0], rows, tokens), put(r, d[1], rows, tokens), put(r, scales, 2)}
		all := slices.Concat(r.live, state, more)
		out := run(all...)
		n := len(r.live)
		losses = append(losses, float64(get(r.t, out[3*n])[0]))
		require.NoError(r.t, xla.FreeAll(append(all, out[3*n])...))
		r.live, state = out[:n], out[n:3*n]
	}
	require.NoError(r.t, xla.FreeAll(state...))
	return losses
}

// logits are those of a batch.
func (r *runner) logits(b, t int) func(in []int32) []float32 {
	var f hlo.Func
	_, has := r.args(&f)
	pass := &nn.Pass{Fn: &f, Has: has, In: []nn.V{f.Arg(hlo.I32, b, t)}}
	out, _, _ := r.forward(pass, nil)
	run := r.compile(&f, out)
	return func(in []int32) []float32 {
		x := put(r, in, b, t)
		out := run(append(slices.Clone(r.live), x)...)
		defer func() { require.NoError(r.t, xla.FreeAll(append(out, x)...)) }()
		return get(r.t, out[0])
	}
}

// generate continues prompts to a number of tokens, each the likeliest, with caches. The prompts of several rows may
// have different lengths.
func (r *runner) generate(total int, prompts ...[]int32) [][]int32 {
	b, longest := len(prompts), len(slices.MaxFunc(prompts, func(a, b []int32) int { return len(a) - len(b) }))
	room := cmp.Or(r.model.Room, total+longest)
	var caches []*xla.Buffer
	var counts []int // of caches, by unit
	step := func(t int) func(in, pos, last []int32) []int32 {
		var f hlo.Func
		_, has := r.args(&f)
		pass := &nn.Pass{Fn: &f, Has: has, In: []nn.V{f.Arg(hlo.I32, b, t)}, Next: &nn.Next{Pos: f.Arg(hlo.I32, b), Room: room}}
		last := f.Arg(hlo.I32, b)
		var had [][]nn.V
		if caches != nil {
			had = make([][]nn.V, len(r.model.Units))
			at := 0
			for u, n := range counts {
				for range n {
					had[u] = append(had[u], f.Arg(caches[at].Type(), caches[at].Dims()...))
					at++
				}
			}
		}
		out, kept, each := r.forward(pass, had)
		counts = each
		best := hlo.ArgMax(2, out)
		next := hlo.TakeAlong(1, best, last.Reshape(b, 1))
		run := r.compile(&f, append(kept, next)...)
		return func(in, pos, at []int32) []int32 {
			more := []*xla.Buffer{put(r, in, b, t), put(r, pos, b), put(r, at, b)}
			out := run(slices.Concat(r.live, more, caches)...)
			require.NoError(r.t, xla.FreeAll(append(more, caches...)...))
			caches = out[:len(out)-1]
			next := make([]int32, b)
			require.NoError(r.t, xla.Get(out[len(out)-1], next))
			require.NoError(r.t, out[len(out)-1].Free())
			return next
		}
	}
	lists, in, pos, at := [][]int32{}, []int32{}, make([]int32, b), []int32{}
	for _, p := range prompts {
		lists = append(lists, slices.Clone(p))
		in = append(in, append(slices.Clone(p), make([]int32, longest-len(p))...)...)
		at = append(at, int32(len(p)-1))
	}
	next := step(longest)(in, pos, at)
	one := step(1)
	for {
		for i := range lists {
			pos[i] = int32(len(lists[i]))
			lists[i] = append(lists[i], next[i])
		}
		if len(lists[0]) >= total {
			require.NoError(r.t, xla.FreeAll(caches...))
			return lists
		}
		next = one(next, pos, make([]int32, b))
	}
}

// tensors are the parameters as ckpt has them.
func (r *runner) tensors(data [][]float32) (list []ckpt.Tensor) {
	for i, p := range r.params {
		list = append(list, ckpt.Tensor{Name: p.Name, Shape: p.Dims, Data: data[i]})
	}
	return list
}

// The row of pad_token_id in the table of embeddings has no gradient, as padding_idx of PyTorch's Embedding has it: one
// below 0 counts from the end, and a head that is tied with the table has its part of the gradient.
func TestPad(t *testing.T) {
	of := func(more string) []float32 {
		config, err := models.Parse([]byte(small("llama", more)))
		require.NoError(t, err)
		r := &runner{t: t, c: xlatest.Client(t), model: config.Model()}
		a := hlo.Array{Type: hlo.I32, Dims: []int{1, 4}}
		units, _, err := r.model.Params(a, a)
		require.NoError(t, err)
		r.params = slices.Concat(units...)
		for _, p := range r.params {
			r.live = append(r.live, put(r, p.Initial(1), p.Dims...))
		}
		defer func() { require.NoError(t, xla.FreeAll(r.live...)) }()
		var f hlo.Func
		params, has := r.args(&f)
		pass := &nn.Pass{Fn: &f, Has: has, In: []nn.V{f.Array(hlo.I32, []float64{2, 3, 8, 3}, 1, 4), f.Array(hlo.I32, []float64{3, 8, 3, 5}, 1, 4)}}
		out, _, _ := r.forward(pass, nil)
		g := r.compile(&f, hlo.Grad(r.model.WriteLoss(pass, out), params[0])...)(r.live...)
		defer func() { require.NoError(t, xla.FreeAll(g...)) }()
		require.Equal(t, "model.embed_tokens.weight", r.params[0].Name)
		return get(t, g[0])
	}
	plain, zero := of(""), make([]float32, 8)
	for id, row := range map[string]int{"3": 3, "-1": 8} {
		padded := of(`"pad_token_id":` + id)
		for i := range 9 {
			had, has := plain[i*8:i*8+8], padded[i*8:i*8+8]
			if i == row {
				require.NotEqual(t, zero, had)
				had = zero
			}
			require.Equal(t, had, has, "row %d, pad_token_id %s", i, id)
		}
	}
	require.Equal(t, plain, of(`"pad_token_id":null`))
	require.NotEqual(t, zero, of(`"pad_token_id":3,"tie_word_embeddings":true`)[24:32])
}

// Each model has transformers' logits, losses of 12 steps and tokens, with a cache and without. What is saved is for
// models.py check to read.
func TestAsTransformers(t *testing.T) {
	dir := os.Getenv("GOCCL_TEST_MODELS")
	if dir == "" {
		t.Skip("hardware: GOCCL_TEST_MODELS is not set: 700 MB of PyTorch, transformers and peft (make models)")
	}
	kinds, err := filepath.Glob(filepath.Join(dir, "*", "ref.json"))
	require.NoError(t, err)
	require.NotEmpty(t, kinds)
	c := xlatest.Client(t)
	for i, file := range kinds {
		kind := filepath.Dir(file)
		t.Run(filepath.Base(kind), func(t *testing.T) {
			ccltest.Run(t, 1, func(t testing.TB, comm *ccl.Comm) { asTransformers(t, c, comm, i, kind) },
				ccltest.Deadline(5*time.Minute)) // most of it compiles, which a busy machine takes long for
		})
	}
}

func asTransformers(t testing.TB, c *xla.Client, comm *ccl.Comm, i int, dir string) {
	text, err := os.ReadFile(filepath.Join(dir, "ref.json"))
	require.NoError(t, err)
	var ref reference
	require.NoError(t, json.Unmarshal(text, &ref))
	file, err := os.ReadFile(filepath.Join(dir, "data.bin"))
	require.NoError(t, err)
	all := make([]int32, len(file)/4)
	_, err = binary.Decode(file, binary.LittleEndian, all)
	require.NoError(t, err)
	data := make([][2][]int32, steps)
	for i := range steps * rows {
		row, d := all[i*(tokens+1):(i+1)*(tokens+1)], &data[i/rows]
		d[0], d[1] = append(d[0], row[:tokens]...), append(d[1], row[1:]...)
	}

	config, err := models.Read(dir)
	require.NoError(t, err)
	r := &runner{t: t, c: c, model: config.Model()}
	a := hlo.Array{Type: hlo.I32, Dims: []int{rows, tokens}}
	units, _, err := r.model.Params(a, a)
	require.NoError(t, err)
	r.params = slices.Concat(units...)
	values := make([][]float32, len(r.params))
	for i, p := range r.params {
		values[i] = make([]float32, p.Len())
	}
	require.NoError(t, ckpt.Load(t.Context(), comm, dir, nil, r.tensors(values)))
	for i, p := range r.params {
		r.live = append(r.live, put(r, values[i], p.Dims...))
	}
	defer func() { require.NoError(t, xla.FreeAll(r.live...)) }()

	logits := r.logits(rows, tokens)
	near(t, ref.Logits, logits(data[0][0]), 2e-5, "logits")
	losses := r.train(data)
	for i, l := range losses {
		require.InDelta(t, ref.Losses[i], l, 1e-5, "loss of step %d", i)
	}
	after := logits(data[0][0])
	near(t, ref.After, after, 1e-3, "logits after training")

	prompt, n := data[0][0][:5], len(ref.Generated)
	if i%2 == 0 || n == r.model.Room { // of one row, and of two whose positions differ: compiling both for all models takes long
		require.Equal(t, ref.Generated, r.generate(n, prompt)[0], "with a cache")
	} else {
		require.Equal(t, ref.Generated, r.generate(n, prompt, data[0][0][tokens:tokens+7])[0], "beside a longer row")
	}
	whole := r.logits(1, n)(ref.Generated)
	v := len(whole) / n
	for k := 4; k < n-1; k++ {
		row := whole[k*v : (k+1)*v]
		require.Equal(t, ref.Generated[k+1], int32(slices.Index(row, slices.Max(row))), "token %d without a cache", k+1)
	}

	for i, b := range r.live {
		values[i] = get(t, b)
	}
	ours := filepath.Join(dir, "ours")
	require.NoError(t, os.RemoveAll(ours))
	saved := filepath.Join(t.TempDir(), "saved")
	require.NoError(t, ckpt.Save(t.Context(), comm, saved, nil, r.tensors(values)))
	require.NoError(t, ckpt.Export(saved, ours, 60_000, nil))
	require.NoError(t, models.Write(ours, config))
	f, err := os.Create(filepath.Join(ours, "logits.bin"))
	require.NoError(t, err)
	require.NoError(t, binary.Write(f, binary.LittleEndian, after))
	require.NoError(t, f.Close())
}

func near(t testing.TB, want []float64, got []float32, bound float64, what string) {
	require.Len(t, got, len(want))
	worst := 0.
	for i, x := range got {
		worst = max(worst, math.Abs(float64(x)-want[i]))
	}
	require.LessOrEqual(t, worst, bound, what)
	t.Logf("%s differ by %.1e", what, worst)
}
