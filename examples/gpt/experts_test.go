package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/tp"
)

const eight = "-experts 8 -top 2 -balance .01 "

// Every layout with experts has the losses of one rank to 5 digits: experts on each rank or spread, whole or split, beside
// replicas, stages, sequences that are split, and each stage of ZeRO.
func TestExpertLayouts(t *testing.T) {
	steps := 12
	if testing.Short() {
		steps = 4
	}
	want := losses(t, 1, steps, eight)
	require.Less(t, want[steps-1], want[0])
	require.NotEqual(t, want, losses(t, 1, steps, ""))
	require.NotEqual(t, want, losses(t, 1, steps, "-experts 8 -top 2 -balance .1"), "the bias matters")
	shared := losses(t, 1, steps, eight+"-shared")
	require.NotEqual(t, want, shared)
	for _, tc := range []struct {
		n      int
		layout string
	}{
		{2, ""}, {2, "-ep 2"}, {4, "-ep 2"}, {4, "-ep 4"}, {8, "-ep 8"}, {2, "-zero 3"}, {4, "-ep 2 -zero 1"}, {4, "-ep 2 -zero 2 -micro 2"},
		{4, "-ep 2 -zero 3"}, {4, "-ep 4 -zero 3"}, {4, "-pp 2 -ep 2 -micro 2"}, {4, "-pp 4 -micro 4 -schedule gpipe"}, {4, "-sp ring=2 -ep 2"},
		{4, "-sp ulysses=2 -ep 2 -zero 2"}, {8, "-dp 4 -pp 2 -ep 2 -micro 2 -zero 3"}, {2, "-ep 2 -recompute"}, {2, "-ep 2 -clip 0"}, {2, "-ep 2 -shared"},
		{4, "-ep 2 -shared -zero 2 -recompute -micro 2"}, {8, "-dp 4 -pp 2 -ep 4 -shared -sp ring=1"},
		{2, "-tp 2"}, {4, "-tp 2 -ep 2"}, {4, "-tp 2 -zero 1"}, {4, "-tp 2 -ep 2 -zero 3 -sp megatron"}, {8, "-tp 2 -ep 2 -zero 2 -micro 2 -sp megatron"},
		{8, "-tp 2 -pp 2 -ep 2 -micro 2"}, {8, "-tp 2 -sp ring=2 -ep 2 -shared"}, {4, "-tp 4 -shared -recompute -sp megatron"}, {2, "-tp 2 -clip 0"},
	} {
		t.Run(fmt.Sprintf("%d ranks %s", tc.n, tc.layout), func(t *testing.T) {
			same := want
			switch {
			case strings.Contains(tc.layout, "shared"):
				same = shared
			case strings.Contains(tc.layout, "clip"):
				same = losses(t, 1, steps, eight+"-clip 0")
				require.NotEqual(t, want, same)
			}
			require.InEpsilonSlice(t, same, losses(t, tc.n, steps, eight+tc.layout), 1e-5)
		})
	}
	for _, layout := range []string{"-ep 2", "-ep 2 -zero 2", "-tp 2"} {
		got := losses(t, 2, steps, eight+"-bf16 "+layout)
		require.InEpsilonSlice(t, want, got, .02)
		require.NotEqual(t, want, got)
	}
}

// One expert that every token takes is the MLP of a block: the same loss and the same gradients, to the bit.
func TestOneExpertIsTheMLP(t *testing.T) {
	c := gpt.Config{Vocab: 7, Context: 5, Width: 8, Heads: 2, Layers: 2}
	one := c
	one.Sparse = gpt.Sparse{Experts: 1, Top: 1}
	p, g := first(c, 1)
	with := func(dense [][][]float32) (all [][][]float32) {
		for u, x := range dense {
			if u > 0 && u <= c.Layers {
				x = [][]float32{x[0], x[1], x[2], x[3], make([]float32, c.Width), x[4], x[5]}
			}
			all = append(all, x)
		}
		return all
	}
	_, got := first(c, 1)
	wp, wg := with(p), with(got)
	ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
		s := &split{t.Context(), &tp.Group{Comm: world}}
		dense, sparse := gpt.NewNet[float32](c, 3, s), gpt.NewNet[float32](one, 3, s)
		sparse.Experts = newExperts(gpt.Reference[float32](), &config{Config: one}, s, world)
		tokens, targets := make([]int32, 15), make([]int32, 15)
		for i := range tokens {
			tokens[i], targets[i] = int32(i*3%7), int32(i*5%7)
		}
		require.Equal(t, pass(t, dense, p, g, tokens, targets), pass(t, sparse, wp, wg, tokens, targets))
	})
	for u := range wg {
		if u > 0 && u <= c.Layers {
			require.Equal(t, make([]float32, c.Width), wg[u][4], "a router that has no choice")
		}
	}
	require.Equal(t, g, got)
}

// pass is a forward and a backward pass through a net.
func pass[T gpt.Float](t testing.TB, n *gpt.Net[T], p, g [][][]T, tokens, targets []int32) (loss float64) {
	x := make([]T, n.Len())
	for u := range p {
		l, err := n.Forward(u, p[u], 0, x, tokens, targets)
		require.NoError(t, err)
		loss += l
	}
	for u := len(p) - 1; u >= 0 && g != nil; u-- {
		require.NoError(t, n.Backward(u, p[u], g[u], 0, x, tokens, targets))
	}
	return loss
}

// The gradients of all parameters of a model with experts against finite differences in float64, with an MLP beside
// them and without.
func TestExpertGradients(t *testing.T) {
	for _, shared := range []bool{false, true} {
		c := gpt.Config{Vocab: 5, Context: 3, Width: 4, Heads: 2, Layers: 1, Sparse: gpt.Sparse{Experts: 3, Top: 2, Shared: shared}}
		ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
			s := &split{t.Context(), &tp.Group{Comm: world}}
			net := func() *gpt.Net[float64] {
				n := gpt.NewNet[float64](c, 2, nil)
				n.Experts = newExperts(gpt.Reference[float64](), &config{Config: c}, s, world)
				return n
			}
			var p, g [][][]float64
			r, params := rand.New(rand.NewPCG(1, 2)), 0
			for u := range c.Units(1) {
				p = append(p, gpt.Init[float64](c, u, 1))
				for e := range c.Sparse.Experts {
					if u == 1 {
						p[u] = append(p[u], gpt.InitExpert[float64](c, 0, e, 1)...)
					}
				}
				g = append(g, nil)
				for _, x := range p[u] {
					g[u] = append(g[u], make([]float64, len(x)))
					params += len(x)
					for i := range x {
						x[i] += .5 * r.NormFloat64()
					}
				}
			}
			require.Equal(t, c.Params(), params)
			tokens, targets := []int32{0, 1, 2, 3, 4, 0}, []int32{1, 2, 3, 4, 0, 2}
			pass(t, net(), p, g, tokens, targets)
			const h = 1e-6
			for u := range p {
				for j := range p[u] {
					for i, x := range p[u][j] {
						p[u][j][i] = x + h
						more := pass(t, net(), p, nil, tokens, targets)
						p[u][j][i] = x - h
						less := pass(t, net(), p, nil, tokens, targets)
						p[u][j][i] = x
						require.InDelta(t, (more-less)/(2*h), g[u][j][i], 1e-7, "unit %d, parameter %d, element %d", u, j, i)
					}
				}
			}
		})
	}
}

// A step leaves a tenth of each gradient in AdamW's moments: those of one rank, where experts are split and spread.
func TestExpertMoments(t *testing.T) {
	moments := func(n int, layout, both string) map[string][]float32 {
		dir, all := filepath.Join(t.TempDir(), "c"), map[string][]float32{}
		ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
			begun(t, world, eight+"-clip 0 "+layout+both, 1, func(tr *trainer) {
				_, _, err := tr.step(t.Context(), 1)
				require.NoError(t, err)
				ts, err := tr.tensors(nil)
				require.NoError(t, err)
				require.NoError(t, ckpt.Save(t.Context(), world, dir, nil, ts))
			})
		})
		ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
			begun(t, world, eight+both, 1, func(tr *trainer) {
				ts, err := tr.tensors(nil)
				require.NoError(t, err)
				require.NoError(t, ckpt.Load(t.Context(), world, dir, nil, ts))
				for _, x := range ts {
					if strings.HasPrefix(x.Name, "adamw.m.") {
						all[x.Name] = x.Data.([]float32)
					}
				}
			})
		})
		return all
	}
	for _, tc := range []struct {
		n            int
		layout, both string
		within       float64 // of the greatest moment of a tensor
	}{
		{2, "-tp 2", "", 1e-5}, {4, "-tp 2 -ep 2 -micro 2", "", 1e-5}, {4, "-tp 4", " -bf16", .02},
		{4, "-tp 2 -ep 2 -sp megatron -zero 2 -micro 2", " -shared", 1e-5},
	} {
		want, got := moments(1, "", tc.both), moments(tc.n, tc.layout, tc.both)
		require.Len(t, got, len(want))
		for name, x := range want {
			most := float64(max(slices.Max(x), -slices.Min(x)))
			require.Positive(t, most, name)
			require.InDeltaSlice(t, x, got[name], tc.within*most, "%s of %s", name, tc.layout)
		}
	}
}

// A checkpoint has the experts by name, and goes on with another number of ranks that share them.
func TestExpertsResume(t *testing.T) {
	args := small + "6 -log 1 " + eight
	whole := lastLoss.FindStringSubmatch(trained(t, 1, args))
	for _, tc := range []struct {
		n, m     int
		from, to string
	}{{2, 4, "-ep 2", "-ep 4 -zero 1"}, {4, 1, "-ep 2 -zero 3", ""}, {4, 2, "-pp 2 -ep 2", "-zero 2"},
		{4, 4, "-ep 4 -zero 3", "-tp 2 -ep 2"}, {4, 1, "-tp 2 -ep 2 -zero 1", ""}, {4, 8, "-tp 4 -sp megatron", "-tp 2 -pp 2 -ep 2"}} {
		t.Run(tc.from+" to "+tc.to, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "c")
			save := args + "-save " + dir + " "
			var out bytes.Buffer
			ccltest.Run(t, tc.n, func(t testing.TB, world *ccl.Comm) {
				c := words(t, save+tc.from)
				require.NoError(t, c.place(tc.n))
				stop := make(chan os.Signal, 1)
				r := &run{stop: stop, out: io.Discard}
				r.hook = func(step int) {
					if step == 3 {
						stop <- os.Interrupt
					}
				}
				require.NoError(t, r.train(t.Context(), world, c))
			})
			out.WriteString(trained(t, tc.m, save+"-resume "+tc.to))
			require.Contains(t, out.String(), "going on from ")
			require.Equal(t, whole, lastLoss.FindStringSubmatch(out.String()))
			var names []string
			for _, x := range ckptNames(t, dir) {
				if strings.Contains(x, "h.3.mlp.") && !strings.HasPrefix(x, "adamw") {
					names = append(names, x)
				}
			}
			require.Equal(t, []string{"h.3.mlp.experts.0.c_fc.weight", "h.3.mlp.experts.0.c_proj.weight", "h.3.mlp.experts.1.c_fc.weight"}, names[:3])
			require.Equal(t, "h.3.mlp.router.weight", names[16])
			require.Len(t, names, 17)
		})
	}
}

// A checkpoint with experts continues a text as the run that has saved it did, where its experts are split and spread.
func TestExpertsGenerate(t *testing.T) {
	const heading30 = "\n30 tokens by the model:\n"
	dir := filepath.Join(t.TempDir(), "c")
	_, want, found := strings.Cut(trained(t, 1, small+"2 "+eight+"-save "+dir+" -sample 1 -tokens 30"), heading30)
	require.True(t, found)
	for _, layout := range []string{"-tp 2 -ep 2", "-tp 4", "-ep 4"} {
		out, err := generated(t, 4, "-save "+dir+" -sample 1 -tokens 30 "+layout)
		require.NoError(t, err, layout)
		_, text, _ := strings.Cut(out, heading30)
		require.Equal(t, want, text, layout)
	}
}

// What does not go with experts is refused, with what does.
func TestExpertFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-top 2":                    "-top is about experts: give -experts",
		"-ep 2":                     "-ep is about experts",
		"-shared":                   "-shared is about experts",
		"-experts 8 -top 9":         "-top 9 of -experts 8",
		"-experts 8 -top 0":         "at least 1",
		"-experts 8 -outer every=2": "-experts with -outer",
		"-experts 8 -norms":         "-norms knows no experts",
		"-experts 8 -ep 3":          "-ep 3 does not divide -experts 8; -ep 2 does",
		"-experts 8 -np 2 -ep 4":    "-ep 4 does not divide 2 replicas; -ep 2 does",
		"-experts 4 -np 6 -ep 4":    "-ep 4 does not divide 6 replicas; -ep 2 does",
		"-experts 8 -balance -1":    "-balance -1: give 0 or more",
		"-experts -1":               "at least 0",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
	}
	c := words(t, "-experts 8 -np 8 -ep 2 -pp 2")
	require.Contains(t, c.layout(), "ep=2 (of the replicas, share 8 experts a layer, of which a token takes 2)")
	require.Equal(t, []int{4, 4, 4, 0}, []int{c.fit(7), c.fit(5), c.fit(4), c.fit(3)}, "even numbers of replicas")
	of, groups := c.replicas(), map[int][]int{}
	for r := range 8 {
		groups[of(r)] = append(groups[of(r)], r)
	}
	var list [][]int
	for k := range 4 {
		list = append(list, groups[k])
	}
	slices.SortFunc(list, slices.Compare)
	require.Equal(t, [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}, list, "ranks with the same experts, on the same stage")
}

// Experts that are too small for each rank to have a part of their state are refused on all ranks.
func TestExpertsTooSmall(t *testing.T) {
	const args = "-layers 1 -heads 1 -width 1 -context 8 -rows 12 -steps 2 -experts 1 -top 1 "
	for _, tc := range []struct {
		n    int
		args string
		want string // nothing is wrong
	}{
		{3, "-zero 1", "-zero 1: the 8 parameters of the experts of a layer are too few for 3 ranks to have a part each"},
		{3, "-zero 3 -bf16", "-zero 3: the 8 parameters"}, {3, "", ""}, {1, "-zero 1", ""}, {3, "-zero 1 -width 3", ""},
	} {
		ccltest.Run(t, tc.n, func(t testing.TB, world *ccl.Comm) {
			c := words(t, args+tc.args)
			require.NoError(t, c.place(tc.n))
			err := (&run{out: io.Discard}).train(t.Context(), world, c)
			if tc.want == "" {
				require.NoError(t, err, tc.args)
				return
			}
			require.ErrorContains(t, err, tc.want)
		})
	}
}

// Ranks whose biases would go apart hear so before the first step.
func TestExpertsBalanceDiffers(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := words(t, small+"2 -experts 4"+[]string{"", " -balance 0"}[world.Rank()])
		require.NoError(t, c.place(2))
		require.EqualError(t, (&run{out: io.Discard}).train(t.Context(), world, c), "-balance differs between ranks: from 0 to 0.001")
	})
}

// ckptNames are the tensors of the last checkpoint.
func ckptNames(t *testing.T, dir string) (names []string) {
	has, err := ckpt.Inspect(filepath.Join(dir, "step-00000006"))
	require.NoError(t, err)
	for _, x := range has.Tensors {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	return names
}

// A spare takes the place of a rank with experts, and the losses are those of an undisturbed run to the bit: the bias of
// the experts is part of the state.
func TestExpertsReplaced(t *testing.T) {
	layouts, kills := []string{"-ep 2", "-ep 4 -zero 1", "-ep 2 -zero 2 -shared", "-tp 2 -ep 2"}, []int{40, 150}
	if testing.Short() {
		layouts, kills = layouts[:1], kills[1:]
	}
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			run := func(name string, opts ...ccltest.Option) []float64 {
				file := filepath.Join(t.TempDir(), name)
				healed(t, 4, "-experts 4 -balance .01 -layers 2 -width 16 -heads 4 -context 8 -rows 8 -lr 3e-3 -steps 6 -json "+file+" "+layout, "", opts...)
				return linesOf(t, file, 6)
			}
			want := run("plain")
			for i, nth := range kills {
				require.Equal(t, want, run("healed", ccltest.Kill(i%4, nth)), "rank %d before its call %d", i%4, nth)
			}
		})
	}
}
