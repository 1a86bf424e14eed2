//go:build xla && cgo && linux

package fit_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/train/fit/sample"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// llama is a small model; tied, its head is the embedding of tokens.
func llama(tied bool) *nn.Model {
	c, err := models.Parse(fmt.Appendf(nil, `{"model_type":"llama","vocab_size":96,"hidden_size":64,"intermediate_size":128,
		"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"tie_word_embeddings":%v}`, tied))
	if err != nil {
		panic(err)
	}
	return c.Model()
}

// options are those of two ranks with one micro batch; rows of a step are 4.
func options() fit.Options {
	return fit.Options{Rows: 4, Tokens: 16, Clip: 1, Seed: 1, Adam: optim.AdamW{Beta1: .9, Beta2: .95, Eps: 1e-8, Decay: .1}}
}

// batches are the micro batches of a rank: rows are the same however they are split.
func batches(o *fit.Options, step, rank, ranks int, masked bool) (list []fit.Batch) {
	micro := max(o.Micro, 1)
	for m := range micro {
		var b fit.Batch
		for r := range o.Rows {
			row := (rank*micro+m)*o.Rows + r
			rnd := rand.New(rand.NewPCG(uint64(step), uint64(row)))
			x := rnd.Int32N(96)
			for i := range o.Tokens {
				b.Tokens = append(b.Tokens, x)
				if rnd.IntN(10) == 0 {
					x = rnd.Int32N(96)
				} else {
					x = (x*31 + 7) % 96
				}
				if masked && i < 3*row { // prompts of different lengths
					b.Wanted = append(b.Wanted, -100)
				} else {
					b.Wanted = append(b.Wanted, x)
				}
			}
		}
		list = append(list, b)
	}
	return list
}

// quick has XLA compile in less time; these programs run for less than that.
const quick = "xla_backend_optimization_level=0"

// with runs f on n ranks with a trainer.
func with(t *testing.T, n int, model func() *nn.Model, o fit.Options, f func(t testing.TB, c *ccl.Comm, x *fit.Trainer)) {
	t.Helper()
	path := xlatest.Path(t)
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		m, err := machine.New(ctx, c, &machine.Options{Plugin: path, Client: "cpu_device_count=1", Flags: quick, Share: true})
		require.NoError(t, err)
		x, err := fit.New(ctx, m, model(), &o)
		require.NoError(t, err)
		f(t, c, x)
		require.NoError(t, x.Close())
		require.NoError(t, m.Close())
	}, ccltest.Deadline(3*time.Minute))
}

// train makes steps, and returns their losses.
func train(ctx context.Context, t testing.TB, c *ccl.Comm, x *fit.Trainer, o *fit.Options, first, last int) (all []float64) {
	for n := first; n <= last; n++ {
		loss, err := x.Step(ctx, n, 1e-3, batches(o, n, c.Rank(), c.Size(), o.Masked))
		require.NoError(t, err)
		list, err := x.Read(ctx, loss)
		require.NoError(t, err)
		all = append(all, list...)
	}
	return all
}

// losses are those of n ranks.
func losses(t *testing.T, n int, model func() *nn.Model, o fit.Options, steps int) (all []float64) {
	t.Helper()
	with(t, n, model, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
		list := train(t.Context(), t, c, x, &o, 1, steps)
		if c.Rank() == 0 {
			all = list
		}
	})
	return all
}

// Layouts are the same training, with masked prompts and without, with an untied head and a tied one.
func TestLayouts(t *testing.T) {
	for _, masked := range []bool{true, false} {
		o := options()
		o.Masked = masked
		model := func() *nn.Model { return llama(masked) }
		want := losses(t, 1, model, o, 4)
		require.Greater(t, want[0], want[3])
		if !masked && testing.Short() {
			break
		}
		for _, tc := range []struct {
			name   string
			ranks  int
			short  bool
			change func(o *fit.Options)
		}{
			{"recompute", 1, true, func(o *fit.Options) { o.Recompute = true }},
			{"units", 1, false, func(o *fit.Options) { o.Units = true }},
			{"two ranks, micro", 2, true, func(o *fit.Options) { o.Rows, o.Micro = 1, 2 }},
			{"ZeRO 1", 2, false, func(o *fit.Options) { o.Rows, o.Stage = 2, 1 }},
			{"ZeRO 2, micro", 2, true, func(o *fit.Options) { o.Rows, o.Micro, o.Stage = 1, 2, 2 }},
			{"ZeRO 3", 2, false, func(o *fit.Options) { o.Rows, o.Stage = 2, 3 }},
			{"ZeRO 3, offload", 2, true, func(o *fit.Options) { o.Rows, o.Stage, o.Offload = 2, 3, true }},
		} {
			if testing.Short() && !tc.short {
				continue
			}
			t.Run(fmt.Sprintf("%s, masked %v", tc.name, masked), func(t *testing.T) {
				o := o
				tc.change(&o)
				require.InDeltaSlice(t, want, losses(t, tc.ranks, model, o, 4), 1e-5)
			})
		}
	}
}

// A run that is saved and goes on in another layout is one that was not, with a moving average.
func TestResume(t *testing.T) {
	o := options()
	o.EMA = .9
	model := func() *nn.Model { return llama(false) }
	var want []float64
	var score, average fit.Score
	held := func(o *fit.Options, c *ccl.Comm) []fit.Batch { return batches(o, 99, c.Rank(), c.Size(), false) }
	scores := func(t testing.TB, c *ccl.Comm, x *fit.Trainer, o *fit.Options) (s, a fit.Score) {
		ctx := t.Context()
		s, err := x.Eval(ctx, held(o, c))
		require.NoError(t, err)
		require.NoError(t, x.Swap(ctx))
		a, err = x.Eval(ctx, held(o, c))
		require.NoError(t, err)
		require.NoError(t, x.Swap(ctx))
		again, err := x.Eval(ctx, held(o, c))
		require.NoError(t, err)
		require.Equal(t, s, again)
		return s, a
	}
	with(t, 1, model, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
		want = train(t.Context(), t, c, x, &o, 1, 6)
		score, average = scores(t, c, x, &o)
	})
	require.NotEqual(t, score, average)
	require.EqualValues(t, 64, score.Tokens)
	for _, tc := range []struct {
		name         string
		before, then int // ranks
		a, b         func(o *fit.Options)
	}{
		{"ZeRO 3 to replica", 2, 1, func(o *fit.Options) { o.Rows, o.Stage = 2, 3 }, func(*fit.Options) {}},
		{"replica to ZeRO 2", 1, 2, func(*fit.Options) {}, func(o *fit.Options) { o.Rows, o.Stage = 2, 2 }},
	} {
		if testing.Short() && tc.before == 1 {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "saved")
			a, b := o, o
			tc.a(&a)
			tc.b(&b)
			var got []float64
			with(t, tc.before, model, a, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
				list := train(t.Context(), t, c, x, &a, 1, 3)
				ts, err := x.Tensors(t.Context(), true)
				require.NoError(t, err)
				require.NoError(t, ckpt.Save(t.Context(), c, dir, nil, ts))
				if c.Rank() == 0 {
					got = list
				}
			})
			with(t, tc.then, model, b, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
				ts, err := x.Tensors(t.Context(), false)
				require.NoError(t, err)
				require.NoError(t, ckpt.Load(t.Context(), c, dir, nil, ts))
				require.NoError(t, x.Restore(t.Context(), ts))
				list := train(t.Context(), t, c, x, &b, 4, 6)
				s, a := scores(t, c, x, &b)
				if c.Rank() == 0 {
					got = append(got, list...)
					require.InDelta(t, score.Loss, s.Loss, 1e-5)
					require.InDelta(t, average.Loss, a.Loss, 1e-5)
					require.InDelta(t, score.Accuracy, s.Accuracy, 1e-9)
				}
			})
			require.InDeltaSlice(t, want, got, 1e-5)
		})
	}
}

// Rows of any lengths are continued as each alone is, with a cache and without, in every layout.
func TestGenerate(t *testing.T) {
	o := options()
	prompts := [][]int32{{1, 2, 3}, {5}, {7, 8, 9, 10, 11}}
	var want [][]int32
	for _, tc := range []struct {
		name  string
		ranks int
		a     func(o *fit.Options)
	}{
		{"replica", 1, func(*fit.Options) {}},
		{"ZeRO 3", 2, func(o *fit.Options) { o.Rows, o.Stage = 2, 3 }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := o
			tc.a(&o)
			with(t, tc.ranks, func() *nn.Model { return llama(false) }, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
				ctx := t.Context()
				train(ctx, t, c, x, &o, 1, 12)
				g := fit.GenerateOptions{Tokens: 10}
				rows, err := x.Generate(ctx, prompts, &g)
				require.NoError(t, err)
				if want == nil {
					want = rows
				}
				require.Equal(t, want, rows)
				g.NoCache = true
				rows, err = x.Generate(ctx, prompts, &g)
				require.NoError(t, err)
				require.Equal(t, want, rows)
				for i, p := range prompts {
					rows, err = x.Generate(ctx, [][]int32{p}, &fit.GenerateOptions{Tokens: 10})
					require.NoError(t, err)
					require.Equal(t, want[i:i+1], rows)
				}
				rows, err = x.Generate(ctx, prompts, &fit.GenerateOptions{Tokens: 10, Stop: want[0][4:5]})
				require.NoError(t, err)
				require.Equal(t, want[0][:5], rows[0][:5])
				require.Equal(t, want[0][4], rows[0][len(rows[0])-1])
				s := fit.GenerateOptions{Tokens: 10, Sample: sample.Options{Temperature: 1, TopK: 1}, Seed: 3}
				rows, err = x.Generate(ctx, prompts, &s)
				require.NoError(t, err)
				require.Equal(t, want, rows, "the likeliest alone")
				train(ctx, t, c, x, &o, 13, 13)
			})
		})
	}
}

// Ranks continue prompts of their own, of other numbers and lengths, though rank 0 compiles what they share.
func TestOwnPrompts(t *testing.T) {
	prompts := [][][]int32{{{1, 2, 3}}, {{5}, {7, 8, 9, 10, 11}}}
	var want [2][][]int32
	o := options()
	with(t, 1, func() *nn.Model { return llama(false) }, o, func(t testing.TB, _ *ccl.Comm, x *fit.Trainer) {
		for i, p := range prompts {
			rows, err := x.Generate(t.Context(), p, &fit.GenerateOptions{Tokens: 3 + i})
			require.NoError(t, err)
			want[i] = rows
		}
	})
	o.Stage = 3
	with(t, 2, func() *nn.Model { return llama(false) }, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
		i := c.Rank()
		rows, err := x.Generate(t.Context(), prompts[i], &fit.GenerateOptions{Tokens: 3 + i})
		require.NoError(t, err)
		require.Equal(t, want[i], rows)
	})
}

// adapted has adapters beside queries and values.
func adapted(act hlo.Type, dropout float64) func() *nn.Model {
	return func() *nn.Model {
		m := llama(true)
		m.Act = act
		m.LoRA = &nn.LoRA{Rank: 4, Scale: 2, Dropout: dropout, Has: func(name string) bool {
			return len(name) > 6 && (name[len(name)-6:] == "q_proj" || name[len(name)-6:] == "v_proj")
		}}
		return m
	}
}

// LoRA is the same in every layout: one rank and two, ZeRO 0 to 3, micro batches, units computed again; dropout draws
// the same numbers again in a unit that is computed anew.
func TestLoRA(t *testing.T) {
	o := options()
	type layout struct {
		name         string
		ranks, stage int
		micro        int
		again, short bool
		units        bool
		base         fit.Storage
		dropout      float64
		delta        float64
	}
	cases := []layout{
		{name: "units, dropout", ranks: 1, units: true, dropout: .5, delta: 1e-5},
		{name: "recompute, dropout", ranks: 1, again: true, dropout: .5, delta: 1e-5, short: true},
		{name: "base in bfloat16, ZeRO 3, micro", ranks: 2, stage: 3, micro: 2, base: quant.BF16, delta: 5e-3},
		{name: "base in int8", ranks: 1, base: quant.Int8, delta: 5e-3},
		{name: "base in NF4, ZeRO 2", ranks: 2, stage: 2, base: quant.NF4, delta: 3e-2},
		{name: "base in NF4, ZeRO 3", ranks: 2, stage: 3, base: quant.NF4, delta: 3e-2, short: true},
	}
	for ranks := 1; ranks <= 2; ranks++ {
		for micro := 1; micro <= 2; micro++ {
			for stage := range 5 { // the last is stage 0 with units computed again
				again := stage == 4
				name := fmt.Sprintf("%d rank(s), %d micro batches, ZeRO %d, recompute %v", ranks, micro, stage%4, again)
				cases = append(cases, layout{name: name, ranks: ranks, stage: stage % 4, micro: micro, again: again,
					short: ranks == 2 && stage == 3 && micro == 1, units: ranks*micro == 1 && stage == 0, delta: 1e-5})
			}
		}
	}
	want := losses(t, 1, adapted(hlo.F32, 0), o, 4)
	dropped := losses(t, 1, adapted(hlo.F32, .5), o, 4)
	require.NotEqual(t, want[2:], dropped[2:])
	for _, tc := range cases {
		if testing.Short() && !tc.short {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			o := o
			o.Stage, o.Micro, o.Recompute, o.Units, o.Base = tc.stage, max(tc.micro, 1), tc.again, tc.units, tc.base
			o.Rows = 4 / tc.ranks / o.Micro
			want := want
			if tc.dropout > 0 {
				want = dropped
			}
			require.InDeltaSlice(t, want, losses(t, tc.ranks, adapted(hlo.F32, tc.dropout), o, 4), tc.delta)
		})
	}
}

// Adapters that are written are read, alone and merged into the model, in other layouts.
func TestAdapters(t *testing.T) {
	dir := t.TempDir()
	merged, adapters := filepath.Join(dir, "merged"), filepath.Join(dir, "adapters")
	o := options()
	var want fit.Score
	with(t, 2, adapted(hlo.F32, 0), func() fit.Options { o := o; o.Rows, o.Stage = 2, 3; return o }(), func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
		o := o
		o.Rows = 2
		train(t.Context(), t, c, x, &o, 1, 4)
		s, err := x.Eval(t.Context(), batches(&o, 9, c.Rank(), 2, false))
		require.NoError(t, err)
		require.NoError(t, x.Export(t.Context(), merged, 0))
		require.NoError(t, x.ExportAdapters(t.Context(), adapters))
		if c.Rank() == 0 {
			want = s
		}
	})
	with(t, 1, adapted(hlo.F32, 0), o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
		require.NoError(t, x.LoadAdapters(t.Context(), adapters))
		s, err := x.Eval(t.Context(), batches(&o, 9, 0, 1, false))
		require.NoError(t, err)
		require.InDelta(t, want.Loss, s.Loss, 1e-5)
	})
	with(t, 1, func() *nn.Model { return llama(true) }, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
		require.NoError(t, x.LoadModel(t.Context(), merged))
		s, err := x.Eval(t.Context(), batches(&o, 9, 0, 1, false))
		require.NoError(t, err)
		require.InDelta(t, want.Loss, s.Loss, 1e-5)
	})
}

// A base in few bits that is sharded generates and is merged as the whole one.
func TestQuantizedBase(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: units tests the shards")
	}
	for _, base := range []fit.Storage{quant.NF4, quant.Int8} {
		var want [][]int32
		var score fit.Score
		for ranks := 1; ranks <= 2; ranks++ {
			o, dir := options(), filepath.Join(t.TempDir(), "merged")
			o.Stage, o.Rows, o.Base = 3, 4/ranks, base
			with(t, ranks, adapted(hlo.F32, 0), o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
				ctx := t.Context()
				train(ctx, t, c, x, &o, 1, 2)
				rows, err := x.Generate(ctx, [][]int32{{1, 2, 3}, {5}}, &fit.GenerateOptions{Tokens: 6})
				require.NoError(t, err)
				s, err := x.Eval(ctx, batches(&o, 9, c.Rank(), ranks, false))
				require.NoError(t, err)
				require.NoError(t, x.Export(ctx, dir, 0))
				if ranks == 1 {
					want, score = rows, s
				}
				require.Equal(t, want, rows)
				require.InDelta(t, score.Loss, s.Loss, 1e-5)
			})
		}
	}
}
