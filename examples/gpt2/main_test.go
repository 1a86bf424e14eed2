//go:build xla && cgo && linux

package main

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
)

// What PyTorch 2.15 has for the first 30 steps of -preset tiny -lr 3e-3, in float32, and with autocast to bfloat16:
//
//	gpt2 -preset tiny -steps 30 -rows 8 -export same
//	python3 test/gpu/torchgpt.py 2,2,64,32,256 8 same 8 30 1 3e-3 f32 # or bf16
var torchF32 = []float64{5.56457, 5.50572, 5.37544, 5.27323, 5.21738, 5.08882, 5.00406, 4.93403, 4.94859, 4.81998, 4.73092, 4.60220, 4.48207, 4.52137,
	4.36762, 4.15231, 4.27422, 4.19418, 4.15091, 3.96760, 3.85862, 3.83253, 3.74653, 3.71828, 3.70283, 3.48737, 3.29867, 3.50892, 3.32637, 3.27081}

var torchBF16 = []float64{5.56461, 5.50564, 5.37583, 5.27351, 5.21726, 5.08836, 5.00356, 4.93356, 4.94832, 4.81988, 4.72993, 4.60206, 4.48144, 4.52090,
	4.36750, 4.15238, 4.27408, 4.19397, 4.15109, 3.96797, 3.85852, 3.83272, 3.74692, 3.71870, 3.70280, 3.48721, 3.29971, 3.50867, 3.32636, 3.27119}

// trained trains as a rank of c, with these lines for -pace. It returns the run, and what it has said.
func trained(t testing.TB, c *ccl.Comm, lines string, args ...string) (r *run, said string, err error) {
	t.Helper()
	cfg, err := parse(args, io.Discard)
	require.NoError(t, err)
	var out bytes.Buffer
	r = &run{out: &out, in: strings.NewReader(lines)}
	_, err = r.train(t.Context(), c, cfg)
	return r, out.String(), err
}

// quick has XLA compile in less time; these programs run for less than that.
const quick = "xla_backend_optimization_level=0"

// losses are what n ranks have with these flags.
func losses(t *testing.T, n int, args ...string) (all []float64) {
	t.Helper()
	args = append([]string{"-preset", "tiny", "-lr", "3e-3", "-plugin", xlatest.Path(t), "-options", "cpu_device_count=1",
		"-flags", quick}, args...)
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		r, _, err := trained(t, c, "", args...)
		require.NoError(t, err)
		if c.Rank() == 0 {
			all = r.loop.Losses
		}
	})
	return all
}

func TestLossesOfPyTorch(t *testing.T) {
	for _, tc := range []struct {
		name  string
		args  []string
		want  []float64
		delta float64
	}{
		{"float32", nil, torchF32, 1e-4},
		{"bfloat16", []string{"-bf16"}, torchBF16, 1e-3},
		{"bfloat16 between layers", []string{"-bf16", "-residual", "bf16"}, torchBF16, 2e-3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := losses(t, 1, append(tc.args, "-steps", "30", "-log", "7", "-flags", "")...) // as users have it
			require.InDeltaSlice(t, tc.want, got, tc.delta)
		})
	}
}

// Any number of ranks, any stage and any number of micro batches has the losses of one rank.
func TestLayouts(t *testing.T) {
	const steps = "8"
	want := torchF32[:8]
	for _, tc := range []struct {
		name  string
		ranks int
		args  string
		delta float64
		short bool
	}{
		{"two ranks", 2, "-share", 2e-5, false},
		{"four ranks, every step waited for", 4, "-share -wait", 2e-5, true},
		{"micro batches", 2, "-share -micro 2", 2e-5, false},
		{"a program for each kind of layer", 1, "-parts", 2e-5, false},
		{"ZeRO 1", 2, "-share -zero 1", 2e-5, false},
		{"ZeRO 2, micro batches", 2, "-share -zero 2 -micro 2", 2e-5, false},
		{"ZeRO 3", 2, "-share -zero 3", 2e-5, false},
		{"ZeRO 3, masters on the host", 2, "-share -zero 3 -offload", 2e-5, true},
		{"ZeRO 3, bfloat16", 2, "-share -zero 3 -bf16 -micro 2 -offload", 2e-3, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && !tc.short {
				t.Skip("-short: package fit trains in these layouts")
			}
			got := losses(t, tc.ranks, append(strings.Fields(tc.args), "-steps", steps, "-log", "4")...)
			require.InDeltaSlice(t, want, got, tc.delta)
		})
	}
}

// Rows that do not divide among three ranks are refused by all of them.
func TestRowsDoNotDivide(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		_, _, err := trained(t, c, "", "-rows", "8")
		require.EqualError(t, err, "-rows 8 does not divide among 3 ranks x -micro 1; -rows 9 does")
	})
}

// Each parameter's gradient is that by differences, along itself, in float64.
func TestGradient(t *testing.T) {
	client := xlatest.Client(t)
	c, err := parse([]string{"-preset", "tiny", "-np", "1"}, io.Discard)
	require.NoError(t, err)
	ps, model := c.params(), c.network()
	model.Act, model.Res, model.Type = hlo.F64, hlo.F64, hlo.F64
	size := hlo.Array{Type: hlo.I32, Dims: []int{c.Fit.Rows, c.model.Positions}}
	_, _, err = model.Params(size, size)
	require.NoError(t, err)
	compiled := func(name string, results func(p []nn.V, loss nn.V) []nn.V) *xla.Program {
		var f hlo.Func
		var p []nn.V
		pass := &nn.Pass{Fn: &f, Has: map[string]nn.V{}}
		for _, x := range ps {
			p = append(p, f.Arg(hlo.F64, x.Dims...))
			pass.Has[x.Name] = p[len(p)-1]
		}
		pass.In = []nn.V{f.Arg(hlo.I32, size.Dims...), f.Arg(hlo.I32, size.Dims...)}
		var x nn.V
		for u := range model.Units {
			x = model.Write(pass, u, x)
		}
		text, err := f.Text(name, results(p, model.WriteLoss(pass, x))...)
		require.NoError(t, err)
		program, err := client.Compile(text, nil)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, program.Free()) })
		return program
	}
	loss := compiled("loss", func(_ []nn.V, loss nn.V) []nn.V { return []nn.V{loss} })
	grads := compiled("gradients", func(p []nn.V, loss nn.V) []nn.V { return hlo.Grad(loss, p...) })
	var live []*xla.Buffer
	defer func() { require.NoError(t, xla.FreeAll(live...)) }()
	put := func(x []float64, dims ...int) *xla.Buffer {
		b, err := xla.Put(client, x, dims...)
		require.NoError(t, err)
		live = append(live, b)
		return b
	}
	var first [][]float64
	var in []*xla.Buffer
	for i, p := range ps {
		var x []float64
		for _, v := range c.initial(i, p) {
			x = append(x, float64(v))
		}
		first, in = append(first, x), append(in, put(x, p.Dims...))
	}
	rows, err := newSource(c)
	require.NoError(t, err)
	batch, err := rows.batches(1, 0)
	require.NoError(t, err)
	for _, x := range [][]int32{batch[0].Tokens, batch[0].Wanted} {
		b, err := xla.Put(client, x, size.Dims...)
		require.NoError(t, err)
		live, in = append(live, b), append(in, b)
	}
	g, err := grads.Run(0, in...)
	require.NoError(t, err)
	live = append(live, g...)
	for i, p := range ps {
		d := make([]float64, p.Len())
		require.NoError(t, xla.Get(g[i], d))
		norm := 0.0
		for _, x := range d {
			norm += x * x
		}
		norm = math.Sqrt(norm)
		const h = 1e-3
		at := func(by float64) float64 {
			moved := append([]float64(nil), first[i]...)
			for k := range moved {
				moved[k] += by * d[k] / norm
			}
			with := append([]*xla.Buffer(nil), in...)
			with[i] = put(moved, p.Dims...)
			out, err := loss.Run(0, with...)
			require.NoError(t, err)
			live = append(live, out[0])
			x := []float64{0}
			require.NoError(t, xla.Get(out[0], x))
			return x[0]
		}
		require.InEpsilon(t, norm, (at(h)-at(-h))/(2*h), 1e-4, p.Name)
	}
}

// -pace takes a line for each window, and ends with an error if there is none.
func TestPace(t *testing.T) {
	args := []string{"-preset", "tiny", "-layers", "1", "-plugin", xlatest.Path(t), "-steps", "4", "-log", "2", "-pace", "-flags", quick}
	for lines, want := range map[string]string{"\n\n": "", "\n": "pace: EOF"} {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			_, said, err := trained(t, c, lines, args...)
			if want == "" {
				require.NoError(t, err)
				require.Regexp(t, `(?s)step=1 loss=.*step=2 loss=.*step=4 loss=`, said)
			} else {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
