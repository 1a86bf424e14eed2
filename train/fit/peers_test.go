//go:build xla && cgo && linux

package fit_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/lora"
	"github.com/goccl/goccl/train/fit/quant"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// peers is the directory of make models, with what transformers and peft have trained.
func peers(t *testing.T) string {
	dir := os.Getenv("GOCCL_TEST_MODELS")
	if dir == "" {
		t.Skip("hardware: GOCCL_TEST_MODELS is not set: 700 MB of PyTorch, transformers and peft (make models)")
	}
	return dir
}

// reference is what PyTorch has.
type reference struct {
	Losses    []float64
	After     json.RawMessage
	Generated []int32
}

func read(t testing.TB, dir string) (r reference, data []int32) {
	text, err := os.ReadFile(filepath.Join(dir, "ref.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &r))
	raw, err := os.ReadFile(filepath.Join(dir, "data.bin"))
	require.NoError(t, err)
	data = make([]int32, len(raw)/4)
	_, err = binary.Decode(raw, binary.LittleEndian, data)
	require.NoError(t, err)
	return r, data
}

// cut are the micro batches of a rank of rows that lie one behind the other; without want they are one token longer.
func cut(o *fit.Options, rank int, rows, want []int32) (list []fit.Batch) {
	for m := range max(o.Micro, 1) {
		var b fit.Batch
		for r := range o.Rows {
			at := (rank*max(o.Micro, 1)+m)*o.Rows + r
			if want == nil {
				row := rows[at*(o.Tokens+1) : (at+1)*(o.Tokens+1)]
				b.Tokens, b.Wanted = append(b.Tokens, row[:o.Tokens]...), append(b.Wanted, row[1:]...)
			} else {
				b.Tokens = append(b.Tokens, rows[at*o.Tokens:(at+1)*o.Tokens]...)
				b.Wanted = append(b.Wanted, want[at*o.Tokens:(at+1)*o.Tokens]...)
			}
		}
		list = append(list, b)
	}
	return list
}

// layouts are those that must train alike, with four rows a step.
var layouts = []struct {
	name  string
	ranks int
	a     func(o *fit.Options)
}{
	{"one rank", 1, func(*fit.Options) {}},
	{"recompute", 1, func(o *fit.Options) { o.Recompute = true }},
	{"two ranks", 2, func(o *fit.Options) { o.Rows = 2 }},
	{"ZeRO 1", 2, func(o *fit.Options) { o.Rows, o.Stage = 2, 1 }},
	{"ZeRO 2, micro batches", 2, func(o *fit.Options) { o.Rows, o.Micro, o.Stage = 1, 2, 2 }},
	{"ZeRO 3", 2, func(o *fit.Options) { o.Rows, o.Stage = 2, 3 }},
}

// some are the kinds of models that a short run is about.
var some = []string{"gpt2", "llama2", "llama3.2", "mistral", "qwen2", "qwen3"}

// Losses, parameters and generations are those of transformers, for each kind of model and in every layout.
func TestTransformers(t *testing.T) {
	kinds, err := filepath.Glob(filepath.Join(peers(t), "*", "trained", "config.json"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(kinds), len(some))
	for _, file := range kinds {
		dir := filepath.Dir(filepath.Dir(file))
		kind := filepath.Base(dir)
		if testing.Short() && !slices.Contains(some, kind) {
			continue
		}
		want, data := read(t, dir)
		for _, bf16 := range []bool{false, true} {
			for _, l := range layouts {
				if testing.Short() && l.name == "two ranks" {
					continue
				}
				o := fit.Options{Rows: 4, Tokens: 16, Adam: optim.AdamW{Beta1: .9, Beta2: .95, Eps: 1e-6, Decay: .1}, BF16: bf16}
				l.a(&o)
				if bf16 && l.name != "one rank" && l.name != "ZeRO 3" {
					continue
				}
				t.Run(fmt.Sprintf("%s, %s, bf16 %v", kind, l.name, bf16), func(t *testing.T) {
					c, err := models.Read(dir)
					require.NoError(t, err)
					model := func() *nn.Model {
						m := c.Model()
						if bf16 {
							m.Act = hlo.BF16
						}
						return m
					}
					with(t, l.ranks, model, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
						ctx := t.Context()
						require.NoError(t, x.LoadModel(ctx, dir))
						worst := 0.
						for s, loss := range want.Losses {
							b, err := x.Step(ctx, s+1, 1e-3, cut(&o, c.Rank(), data[s*4*17:(s+1)*4*17], nil))
							require.NoError(t, err)
							got, err := x.Read(ctx, b)
							require.NoError(t, err)
							worst = max(worst, math.Abs(got[0]-loss))
						}
						if bf16 {
							require.LessOrEqual(t, worst, 1e-2)
							t.Logf("losses differ by %.1e", worst)
							return
						}
						require.LessOrEqual(t, worst, 1e-5)
						far := differs(t, c, x, filepath.Join(dir, "trained"))
						require.LessOrEqual(t, far, 1e-4)
						t.Logf("losses differ by %.1e, parameters by %.1e", worst, far)
						if l.ranks == 2 && o.Stage < 3 || o.Recompute {
							return // the others generate by the programs of one rank
						}
						for _, no := range []bool{false, true} {
							rows, err := x.Generate(ctx, [][]int32{want.Generated[:5]}, &fit.GenerateOptions{Tokens: len(want.Generated) - 5, NoCache: no})
							require.NoError(t, err)
							require.Equal(t, want.Generated, rows[0])
						}
					})
				})
			}
		}
	}
}

// differs is by how much the parameters are others than those of a model that was saved.
func differs(t testing.TB, c *ccl.Comm, x *fit.Trainer, dir string) (most float64) {
	list, err := x.Tensors(t.Context(), true)
	require.NoError(t, err)
	known, err := ckpt.Inspect(dir)
	require.NoError(t, err)
	has := map[string]bool{}
	for _, k := range known.Tensors {
		has[k.Name] = true
	}
	var other []ckpt.Tensor
	var ours [][]float32
	for _, p := range list {
		if !has[p.Name] {
			continue
		}
		ours = append(ours, p.Data.([]float32))
		p.Data, p.On = make([]float32, len(ours[len(ours)-1])), nil
		other = append(other, p)
	}
	require.NotEmpty(t, other)
	require.NoError(t, ckpt.Load(t.Context(), c, dir, nil, other))
	for i, p := range other {
		for k, v := range p.Data.([]float32) {
			most = max(most, math.Abs(float64(v-ours[i][k])))
		}
	}
	return most
}

// LoRA is as peft has it: the mean over the tokens that count, in every layout; what is written is for peft to read.
func TestPEFT(t *testing.T) {
	root := peers(t)
	for _, name := range []string{"llama", "stable", "pattern", "layers", "ranks", "turned", "bf16", "nf4"} {
		dir := filepath.Join(root, "lora-"+name)
		want, data := read(t, dir)
		n := len(data) / 2
		for i, l := range layouts {
			o := fit.Options{Rows: 4, Tokens: 16, Masked: true, Clip: 1, Adam: optim.AdamW{Beta1: .9, Beta2: .95, Eps: 1e-6, Decay: .1}}
			l.a(&o)
			delta := 1e-5
			switch name {
			case "bf16":
				o.Base, delta = quant.BF16, 1e-2
			case "nf4":
				o.Base = quant.NF4
			}
			t.Run(name+", "+l.name, func(t *testing.T) {
				model := func() *nn.Model {
					c, err := models.Read(filepath.Join(dir, "base"))
					require.NoError(t, err)
					m := c.Model()
					if name == "bf16" {
						m.Act, m.Res = hlo.BF16, hlo.BF16
					}
					a, err := lora.Read(filepath.Join(dir, "first"))
					require.NoError(t, err)
					m.LoRA, err = a.Option()
					require.NoError(t, err)
					return m
				}
				with(t, l.ranks, model, o, func(t testing.TB, c *ccl.Comm, x *fit.Trainer) {
					ctx := t.Context()
					require.NoError(t, x.LoadModel(ctx, filepath.Join(dir, "base")))
					require.NoError(t, x.LoadAdapters(ctx, filepath.Join(dir, "first")))
					worst := 0.
					for s, loss := range want.Losses {
						lo, hi := s*4*16, (s+1)*4*16
						b, err := x.Step(ctx, s+1, 1e-2, cut(&o, c.Rank(), data[lo:hi], data[n+lo:n+hi]))
						require.NoError(t, err)
						got, err := x.Read(ctx, b)
						require.NoError(t, err)
						worst = max(worst, math.Abs(got[0]-loss))
					}
					score, err := x.Eval(ctx, cut(&o, c.Rank(), data[:64], data[n:n+64]))
					require.NoError(t, err)
					var after float64
					require.NoError(t, json.Unmarshal(want.After, &after))
					t.Logf("losses differ by %.1e, the score by %.1e", worst, math.Abs(score.Loss-after))
					require.LessOrEqual(t, worst, delta)
					require.InDelta(t, after, score.Loss, delta)
					if i == len(layouts)-1 {
						require.NoError(t, x.ExportAdapters(ctx, filepath.Join(dir, "ours")))
						require.NoError(t, x.Export(ctx, filepath.Join(dir, "ours-merged"), 0))
						if c.Rank() == 0 {
							a, err := lora.Read(filepath.Join(dir, "first"))
							require.NoError(t, err)
							require.NoError(t, a.Write(filepath.Join(dir, "ours")))
							m, err := models.Read(filepath.Join(dir, "base"))
							require.NoError(t, err)
							require.NoError(t, models.Write(filepath.Join(dir, "ours-merged"), m))
						}
					}
				})
			})
		}
	}
}
