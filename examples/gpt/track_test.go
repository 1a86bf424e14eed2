package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/gpt"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/history/timeline"
)

// With -recompute the losses have the same bits, in all layouts, also between validations.
func TestRecompute(t *testing.T) {
	const steps = 4
	for _, tc := range []struct {
		n      int
		layout string
	}{{1, ""}, {1, "-micro 4 -tied"}, {2, "-pp 2 -micro 4"}, {2, "-tp 2 -sp megatron"}, {2, "-sp ring=2"}, {2, "-sp ulysses=2 -zero 3"},
		{4, "-pp 2 -tp 2 -micro 2 -zero 2 -bf16"}, {4, "-pp 2 -micro 2 -schedule gpipe -zero 3 -tied"}} {
		var got [2][]float64
		var kept [2]int
		for k, flag := range []string{"", " -recompute"} {
			ccltest.Run(t, tc.n, func(t testing.TB, world *ccl.Comm) {
				begun(t, world, tc.layout+flag, steps, func(tr *trainer) {
					for step := 1; step <= steps; step++ {
						loss, _, err := tr.step(t.Context(), step)
						require.NoError(t, err)
						check, err := tr.eval(t.Context())
						require.NoError(t, err)
						if world.Rank() == 0 {
							got[k] = append(got[k], loss, check)
						}
					}
					if world.Rank() == 0 {
						kept[k] = tr.net.Activations()
					}
				})
			})
		}
		require.Equal(t, got[0], got[1], tc.layout)
		require.Less(t, kept[1], kept[0], tc.layout)
	}
}

// begun makes a trainer of the small model with these flags.
func begun(t testing.TB, world *ccl.Comm, flags string, steps int, with func(tr *trainer)) {
	c := words(t, small+fmt.Sprint(steps)+" "+flags)
	require.NoError(t, c.place(world.Size()))
	raw, err := read("")
	require.NoError(t, err)
	text, err := newText("", raw, c.Context, 0)
	require.NoError(t, err)
	c.Vocab = text.vocab
	tr, err := newTrainer(t.Context(), world, c, text)
	require.NoError(t, err)
	with(tr)
	require.NoError(t, tr.close())
}

// first are the whole parameters of a model before the first step, and gradients, all zero.
func first(c gpt.Config, seed uint64) (p, g [][][]float32) {
	for u, lens := range c.Units(1) {
		p, g = append(p, gpt.Init[float32](c, u, seed)), append(g, nil)
		for _, l := range lens {
			g[u] = append(g[u], make([]float32, l))
		}
	}
	return p, g
}

// The norms of layers and the noise scale in the first step are those of gradients that a net computes of each half of the rows.
func TestNorms(t *testing.T) {
	const rows = 8
	want := map[bool]map[string]float64{} // by tied
	for _, flags := range []string{"", "-tied"} {
		ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
			begun(t, world, flags, 1, func(tr *trainer) {
				want[tr.cfg.Tied] = halves(t, tr, rows)
			})
		})
	}
	for _, tc := range []struct {
		n      int
		layout string
	}{{2, ""}, {2, "-zero 1"}, {2, "-zero 3"}, {2, "-micro 2"}, {4, "-tp 2 -clip 0.1"}, {4, "-tp 2 -sp megatron -zero 1 -clip 0.1"}, {4, "-pp 2 -micro 2 -zero 1"},
		{2, "-tied"}, {4, "-tied -pp 2 -clip 0.1"}, {1, "-clip 0.1"}, {2, "-sp ring=2"}, {2, "-zero 2 -micro 2"}} {
		ccltest.Run(t, tc.n, func(t testing.TB, world *ccl.Comm) {
			begun(t, world, tc.layout+" -norms", 1, func(tr *trainer) {
				_, _, err := tr.step(t.Context(), 1)
				require.NoError(t, err)
				list, err := tr.metrics(t.Context())
				require.NoError(t, err)
				got := map[string]float64{}
				for _, m := range list {
					got[m.Name] = m.Value
				}
				w := want[tr.cfg.Tied]
				if tr.cfg.dp < 2 || tr.cfg.stage == 2 { // there is nothing to compare, or it is not whole
					require.NotContains(t, got, "noise")
					got["noise"] = w["noise"]
				}
				require.Len(t, got, len(w), tc.layout)
				for name, x := range w {
					require.InEpsilon(t, x, got[name], 1e-3, "%s %s", tc.layout, name)
				}
			})
		})
	}
}

// halves are the metrics of a step whose gradients are the mean of those of two halves of the rows.
func halves(t testing.TB, tr *trainer, rows int) map[string]float64 {
	c := tr.cfg
	n := gpt.NewNet[float32](c.Config, rows/2, nil)
	var g [2][][][]float32
	for k := range g {
		p, zeros := first(c.Config, c.seed)
		g[k] = zeros
		head := len(p) - 1
		if c.Tied {
			p[head], g[k][head] = append(p[head], p[0][0]), append(g[k][head], g[k][0][0])
		}
		x, y := tr.text.batch(c.seed, 1, rows, k*rows/2, (k+1)*rows/2, c.Context)
		h := make([]float32, n.Len())
		for u := range p {
			_, err := n.Forward(u, p[u], 0, h, x, y)
			require.NoError(t, err)
		}
		for u := head; u >= 0; u-- {
			require.NoError(t, n.Backward(u, p[u], g[k][u], 0, h, x, y))
		}
		if c.Tied {
			g[k][head] = g[k][head][:1]
		}
	}
	out := map[string]float64{}
	var small, whole float64
	for u := range g[0] {
		layer := 0.
		for j := range g[0][u] {
			for i := range g[0][u][j] {
				a, b := float64(g[0][u][j][i]), float64(g[1][u][j][i])
				small += (a*a + b*b) / 2
				layer += (a + b) * (a + b) / 4
			}
		}
		name := fmt.Sprintf("norm/h.%d", u-1)
		if u == 0 {
			name = "norm/embedding"
		} else if u == len(g[0])-1 {
			name = "norm/head"
		}
		out[name] = math.Sqrt(layer)
		whole += layer
	}
	out["norm"] = math.Sqrt(whole)
	// |G|^2 + tr/b is expected of a batch of b rows: two equations.
	b, B := float64(rows/2), float64(rows)
	signal := (B*whole - b*small) / (B - b)
	out["noise"] = (small - whole) / (1/b - 1/B) / signal
	return out
}

// What cannot be written is told before a rank is started.
func TestTracksNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for flags, want := range map[string]string{"-events " + file: "-events: ", "-events " + filepath.Join(file, "x"): "not a directory", "-csv " + filepath.Join(file, "x"): "not a directory"} {
		c := words(t, flags)
		require.NoError(t, c.place(1))
		require.ErrorContains(t, c.ready(t.Context()), want, flags)
	}
	dir := filepath.Join(t.TempDir(), "runs", "a")
	c := words(t, "-events "+dir)
	require.NoError(t, c.place(1))
	require.NoError(t, c.ready(t.Context()))
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, list)
}

// A run writes all that it is asked to record, and one that goes on does so in the same directory.
func TestTracks(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for k, flags := range []string{"4", "6 -resume"} {
		trained(t, 2, small+flags+" -norms -recompute -save "+at("run")+" -events "+at("events")+" -csv "+at("table.csv")+" -json "+at("lines"))
		list, err := os.ReadDir(at("events"))
		require.NoError(t, err)
		require.Len(t, list, k+1)
		raw, err := os.ReadFile(filepath.Join(at("events"), list[k].Name()))
		require.NoError(t, err)
		for _, tag := range []string{"loss", "tps", "norm", "norm/h.3", "noise", "norm/embedding"} {
			require.True(t, bytes.Contains(raw, append([]byte{'\n', byte(len(tag))}, tag...)), tag)
		}
	}
	f, err := os.Open(at("table.csv"))
	require.NoError(t, err)
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3) // this run's steps
	require.Equal(t, "step", rows[0][0])
	require.Equal(t, []string{"5", "6"}, []string{rows[1][0], rows[2][0]})
	lines, err := os.Open(at("lines"))
	require.NoError(t, err)
	defer lines.Close()
	h, err := history.Read(lines)
	require.NoError(t, err)
	for _, name := range []string{"loss", "norm/head"} {
		steps := 0
		for step, s := range h.Series(name) {
			steps++
			require.Equal(t, steps, step)
			require.Positive(t, s.Mean)
			if step > 4 {
				at := -1
				for i, head := range rows[0] {
					if head == name {
						at = i
					}
				}
				require.Equal(t, strconv.FormatFloat(s.Mean, 'g', -1, 64), rows[step-4][at])
			}
		}
		require.Equal(t, 6, steps)
	}
}

// A timeline that one rank alone has would be an error behind the last step, and lost.
func TestTimelineOfOneRank(t *testing.T) {
	for rank := range 2 {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			c := words(t, small+"2")
			require.NoError(t, c.place(2))
			r := &run{out: io.Discard}
			if world.Rank() == rank {
				r.line = timeline.New(0)
			}
			require.EqualError(t, r.train(t.Context(), world, c), "some ranks have -timeline and others do not: give it to all of them")
		})
	}
}

// A timeline has each unit's forward and backward pass, the steps, and the calls of package zero, of all ranks.
func TestTimeline(t *testing.T) {
	name := filepath.Join(t.TempDir(), "t.json")
	ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
		c := words(t, small+"2 -zero 2 -pp 2 -timeline "+name)
		require.NoError(t, c.place(4))
		r := &run{out: io.Discard, line: timeline.New(0)}
		own, err := world.SplitWith(t.Context(), 0, world.Rank(), func(o *ccl.Options) { o.OnCall = r.line.Call })
		require.NoError(t, err)
		require.NoError(t, r.train(t.Context(), own, c))
		require.NoError(t, own.Close())
	})
	b, err := os.ReadFile(name)
	require.NoError(t, err)
	var f struct {
		TraceEvents []struct {
			Name, Ph string
			Pid      int
		}
	}
	require.NoError(t, json.Unmarshal(b, &f))
	count := map[string]int{}
	for _, e := range f.TraceEvents {
		if e.Ph == "X" {
			count[fmt.Sprint(e.Pid, " ", e.Name)]++
		}
	}
	for rank, units := range [][]string{{"embedding", "h.0", "h.1"}, {"h.2", "h.3", "head"}, {"embedding", "h.0", "h.1"}, {"h.2", "h.3", "head"}} {
		for i, u := range units {
			require.Equal(t, 2*2, count[fmt.Sprint(rank, " ", u)], "forward and backward, twice: rank %d, %s", rank, u)
			require.Equal(t, 2, count[fmt.Sprintf("%d ReduceScatter of unit %d", rank, i+1)])
			require.Equal(t, 3, count[fmt.Sprintf("%d AllGather of unit %d", rank, i+1)], "and when they were loaded")
		}
		require.Equal(t, 1, count[fmt.Sprint(rank, " step 2")])
		require.Equal(t, 2, count[fmt.Sprint(rank, " update")])
	}
}
