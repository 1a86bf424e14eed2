package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
)

func words(t testing.TB, args string) *config {
	c, err := parse(strings.Fields(args), io.Discard)
	require.NoError(t, err)
	return c
}

const small = "-layers 4 -width 32 -heads 4 -context 24 -rows 8 -lr 3e-3 -steps "

// losses trains on n ranks and returns the losses.
func losses(t *testing.T, n, steps int, layout string) (all []float64) {
	ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
		got := train(t, world, steps, layout)
		if world.Rank() == 0 {
			all = got
		}
	})
	return all
}

// train is what rank 0 of these ranks has for losses.
func train(t testing.TB, world *ccl.Comm, steps int, layout string) (all []float64) {
	begun(t, world, layout, steps, func(tr *trainer) {
		for step := range steps {
			loss, _, err := tr.step(t.Context(), step+1)
			require.NoError(t, err)
			all = append(all, loss)
		}
	})
	return all
}

// Ranks of tp have the same parameters where these are not divided, in every bit, though each has made the gradients of them
// with its own tokens.
func TestReplicated(t *testing.T) {
	for _, layout := range []string{"-bf16 -zero 0", "-bf16 -zero 1", "-bf16 -zero 2", "-zero 1"} {
		ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
			begun(t, world, "-tp 2 -sp megatron -micro 2 "+layout, 3, func(tr *trainer) {
				for step := 1; step <= 3; step++ {
					_, _, err := tr.step(t.Context(), step)
					require.NoError(t, err)
				}
				for i, u := range tr.units {
					for _, p := range tr.model.Pieces(i) {
						if tr.divided(u, p.Param) {
							continue
						}
						mine := tr.model.Shard(i)[p.At:][:p.Hi-p.Lo]
						first := slices.Clone(mine)
						require.NoError(t, ccl.Broadcast(t.Context(), world, first, 0))
						require.True(t, slices.Equal(first, mine), "%s: parameter %d of unit %d", layout, p.Param, u)
					}
				}
			})
		})
	}
}

// So it has where each rank is a process, and where the ranks are on two hosts.
func TestLayoutsElsewhere(t *testing.T) {
	steps := 6
	if testing.Short() {
		steps = 2
	}
	alone := func(layout string) []float64 { // in each process
		c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
		require.NoError(t, err)
		defer c.Close()
		return train(t, c, steps, layout)
	}
	want, micros := alone(""), alone("-micro 4")
	for _, tc := range []struct {
		n      int
		layout string
		exact  bool // the bits of one rank with as many micro batches
	}{
		{2, "-tp 2", false}, {4, "-tp 4 -sp megatron", false}, {4, "-tp 2", false}, {4, "-pp 2 -micro 2", false},
		{8, "-pp 2 -tp 2 -micro 2 -zero 0", false}, {8, "-pp 2 -tp 2 -micro 2 -zero 1", false}, {8, "-pp 2 -tp 2 -micro 2 -zero 3", false},
		{2, "-sp ulysses=2", false}, {4, "-sp ring=4", false}, {2, "-pp 2 -micro 4", true}, {4, "-pp 4 -micro 4", true},
	} {
		for name, opt := range map[string]ccltest.Option{"processes": ccltest.Processes(tc.n), "hosts": ccltest.Hosts(2)} {
			if testing.Short() && tc.n != 4 {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d ranks %s", name, tc.n, tc.layout), func(t *testing.T) {
				ccltest.Run(t, tc.n, func(t testing.TB, world *ccl.Comm) {
					got := train(t, world, steps, tc.layout)
					if world.Rank() != 0 {
						return
					}
					if tc.exact {
						require.Equal(t, micros, got)
					}
					require.InDeltaSlice(t, want, got, 1e-6)
				}, opt)
			})
		}
	}
}

// Every layout has the losses of one rank, within 1e-6 for 12 steps and within 1e-5 of the loss for 50: by then sums in
// another order have grown to 1.2e-5 of 2.04.
func TestLayouts(t *testing.T) {
	steps := 50
	if testing.Short() {
		steps = 4
	}
	want := losses(t, 1, steps, "")
	require.Less(t, want[steps-1], want[0])
	for _, tc := range []struct {
		n      int
		layout string
	}{
		{2, "-zero 0"}, {2, "-zero 1"}, {4, "-zero 2"}, {4, "-zero 3"}, {2, "-zero 3 -micro 2"},
		{2, "-tp 2"}, {4, "-tp 4 -sp megatron"}, {2, "-tp 2 -sp megatron -zero 2 -micro 2"},
		{2, "-pp 2 -micro 4"}, {4, "-pp 4 -micro 4 -schedule gpipe"}, {8, "-pp 2 -tp 2 -micro 2 -zero 1"},
		{2, "-sp ulysses=2"}, {4, "-sp ring=2 -zero 3"}, {4, "-sp ring=4 -micro 2"}, {4, "-pp 2 -sp ulysses=2 -micro 2 -zero 2"},
		{8, "-pp 2 -tp 2 -micro 2 -zero 3 -sp megatron"}, {8, "-pp 2 -tp 2 -micro 2 -zero 0"},
		{4, "-tp 4"}, {4, "-tp 2"}, {4, "-tp 2 -sp megatron"}, {4, "-pp 2 -micro 2"},
		{4, "-tp 2 -sp ring=2"}, {4, "-tp 2 -sp ulysses=2 -recompute"}, {8, "-tp 2 -pp 2 -sp ring=2"}, {16, "-dp 2 -tp 2 -pp 2 -sp ring=2 -micro 2 -zero 2"},
	} {
		t.Run(fmt.Sprintf("%d ranks %s", tc.n, tc.layout), func(t *testing.T) {
			got := losses(t, tc.n, steps, tc.layout)
			require.InEpsilonSlice(t, want, got, 1e-5)
			first := min(steps, 12)
			require.InDeltaSlice(t, want[:first], got[:first], 1e-6)
		})
	}
	tied := losses(t, 1, steps, "-tied")
	require.NotEqual(t, want, tied)
	for _, layout := range []string{"-np 2 -zero 0", "-np 2 -zero 3 -micro 2", "-np 2 -pp 2 -micro 4", "-np 4 -pp 4 -micro 2 -zero 3",
		"-np 4 -tp 2 -sp megatron -zero 2", "-np 8 -tp 2 -pp 2 -sp ring=2 -micro 2", "-np 8 -pp 2 -tp 2 -sp megatron -micro 2 -zero 2"} {
		t.Run("tied "+layout, func(t *testing.T) {
			require.InDeltaSlice(t, tied, losses(t, int(layout[4]-'0'), steps, "-tied "+layout), 1e-5)
		})
	}
	for _, layout := range []string{"-np 1", "-np 2 -zero 1 -micro 2", "-np 2 -zero 3 -tied", "-np 2 -pp 2 -micro 2 -tied"} {
		t.Run("bf16 "+layout, func(t *testing.T) {
			near := want
			if strings.Contains(layout, "tied") {
				near = tied
			}
			got := losses(t, int(layout[4]-'0'), steps, "-bf16 "+layout)
			require.InEpsilonSlice(t, near, got, .02)
			require.NotEqual(t, near, got)
		})
	}
	// dp adds the gradients of its ranks as one rank adds those of micro batches that it reduces one by one.
	for _, n := range []int{2, 4} {
		alone := losses(t, 1, steps, fmt.Sprintf("-zero 2 -micro %d", n))
		for _, layout := range []string{"-zero 0", "-zero 1", "-zero 2", "-zero 3"} {
			require.Equal(t, alone, losses(t, n, steps, layout), "%d ranks, %s", n, layout)
		}
	}
	micros := losses(t, 1, steps, "-micro 4")
	for _, p := range []int{2, 4} {
		for _, schedule := range []string{"1f1b", "gpipe"} {
			layout := fmt.Sprintf("-pp %d -micro 4 -schedule %s", p, schedule)
			require.Equal(t, micros, losses(t, p, steps, layout), "a pipeline makes the same sums: %s", layout)
		}
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-tp 3":       "-tp 3 does not divide 4 heads; -tp 2 does",
		"-zero 4":     "the stages are 0 to 3",
		"-np 3 -dp 2": "-dp 3 fits",
		"-np 3 -tp 2": "start 2, or 4", "-sp ulysses=3": "ulysses=2", "-sp ring=3": "ring=2", "-sp ulysses=4 -tp 2": "-sp ulysses=4 does not divide the 2 heads of a rank; ulysses=2 does",
		"-resume": "need -save", "-save x -recover": "-every",
		"-topk 3": "-topk is about a sample: give -sample", "-sample a -topk -1": "-topk -1: it must be at least 0", "-sample a -tokens 0": "at least 1",
		"-sample a -temperature -1": "-temperature -1: give 0", "-sample a -temperature NaN": "give 0", "-sample a -temperature 1e-9": "at least 0.001",
		"-generate -save x": "give -sample", "-generate -sample a": "give -save", "-generate -sample a -save x -preset char": "leave -preset out",
		"-generate -sample a -save x -resume": "trains nothing: leave -resume out", "-from 3 -save x": "-resume or -generate",
		"-np 2 -micro 3": "-rows 18 does",
		"-pp 3":          "-pp 2 does",
		"-np 0":          "at least 1",
		"-preset x":      "babygpt",
		"-schedule x":    "gpipe",
		"-sp ring":       "ring=N",
		"-sp megatron":   "-tp",
		"-heads 5":       "-heads 4 does",
		"-lr 0":          "greater than 0",
		"-lr NaN":        "both must be finite", "-lr Inf": "both must be finite", "-clip NaN": "at least 0", "-clip Inf": "both must be finite", "-clip -1": "at least 0",
		"-generate -sample a -save x -pp 4294967296 -tp 4294967296": "-pp 4294967296: it must be at most 16384",
		"-np 4294967296 -micro 4294967296":                          "-np 4294967296: it must be at most 16384",
		"-width 9223372036854775783 -heads 2":                       "-width 9223372036854775783: it must be at most 1073741824",
		"-json x -svg ./x":                                          "-svg ./x: -json writes that file; give another name",
		"-timeline x -csv x":                                        "-timeline x: -csv writes that file",
		"-steps x":                                                  "invalid value",
		"extra":                                                     "not a flag",
		"-np 2 -tp 2 -sp megatron -context 3 -rows 1":               "do not divide",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
	}
	var help bytes.Buffer
	_, err := parse([]string{"-h"}, &help)
	require.True(t, errors.Is(err, flag.ErrHelp))
	listed := 0
	for _, g := range groups {
		require.Contains(t, help.String(), g[0]+":")
		listed += len(g[1:])
	}
	require.Equal(t, listed, strings.Count(help.String(), "\n  -"), "every flag")
	require.Contains(t, help.String(), "dtf forward")
	for _, word := range []string{"help", "version", "-version"} {
		var out bytes.Buffer
		_, err := parse([]string{word}, &out)
		require.ErrorIs(t, err, flag.ErrHelp)
		require.True(t, strings.HasPrefix(out.String(), "gpt "), out.String())
	}
}

// One of a thing is not several.
func TestCount(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{count(0, "rank", "s"), "0 ranks"}, {count(1, "rank", "s"), "1 rank"}, {count(2, "rank", "s"), "2 ranks"},
		{count(1, "micro batch", "es"), "1 micro batch"}, {count(3, "micro batch", "es"), "3 micro batches"},
		{since(3, 4, "lost"), "step 4 is lost"}, {since(3, 6, "made again"), "steps 4 to 6 are made again"}, {since(3, 3, "lost"), "no step is lost"},
	} {
		require.Equal(t, tc.want, tc.got)
	}
	for _, args := range []string{"-rows 1 -context 1 -width 4 -layers 1 -steps 1", "-steps 2 -np 2 -micro 2 -zero 1"} {
		c := words(t, "-width 32 -heads 4 -context 24 "+args)
		require.NotRegexp(t, `\b1 (\w+ )?(ranks|batches|buckets|rows|tokens|steps|gradients|units|parameters)\b`, trained(t, max(c.np, 1), "-width 32 -heads 4 -context 24 "+args))
	}
	for args, want := range map[string]string{"-np 1 -pp 2": "-pp 2 -tp 1 with 1 rank per sequence does not fit 1 rank: start 2", "-np 3 -dp 2": "-dp 2 times 1 rank per replica"} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
	}
}

func TestText(t *testing.T) {
	dir := t.TempDir()
	for name, raw := range map[string]string{"empty.txt": "", "one.txt": "a", "short.txt": "abcdefgh", "odd.bin": "abc", "empty.bin": ""} {
		_, err := newText(filepath.Join(dir, name), []byte(raw), 16, 0)
		require.ErrorContains(t, err, name)
	}
	x, err := newText("a.bin", []byte(strings.Repeat("\x01\x00\x05\x01", 40)), 16, 0)
	require.NoError(t, err)
	require.Equal(t, 0x106, x.vocab)
	_, err = newText("a.bin", []byte(strings.Repeat("\x01\x00\x05\x01", 40)), 16, 5)
	require.ErrorContains(t, err, "-vocab 5")
	_, err = x.encode("a")
	require.Error(t, err)
	require.Equal(t, 2, x.different)
	x, err = newText("a.txt", []byte(strings.Repeat("hello ", 40)), 16, 0)
	require.NoError(t, err)
	require.Equal(t, 5, x.vocab)
	in, out := x.batch(1, 2, 4, 1, 3, 16)
	require.Equal(t, in[1:16], out[:15])
	all, _ := x.batch(1, 2, 4, 0, 4, 16)
	require.Equal(t, all[16:48], in, "rows are the same however they are cut")
	_, err = x.encode("z")
	require.ErrorContains(t, err, "not in the data")
}

// The whole of a rank: log, metrics, picture, validation and sample.
func TestTrain(t *testing.T) {
	dir := t.TempDir()
	svg, lines := filepath.Join(dir, "loss.svg"), filepath.Join(dir, "log.json")
	out := trained(t, 2, small+"4 -eval 2 -log 1 -sample 1 -svg "+svg+" -json "+lines)
	for _, want := range []string{"dp=2", "parameters", "step=1 loss=", "mfu=", "step=4 validation=", "width 32) on ", "2 ranks: dp=2 (replicas); a step is 8 rows of 24 tokens\n", "dtx of that not hidden. tps: tokens/s.", "4 steps, 768 tokens"} {
		require.Contains(t, out, want)
	}
	if runtime.GOOS == "linux" {
		require.Regexp(t, `exposed communication [0-9.]+ %; \d+ MB resident in a rank at most\n`, out)
	}
	b, err := os.ReadFile(svg)
	require.NoError(t, err)
	require.Contains(t, string(b), "<svg")
	require.Contains(t, string(b), ">loss</text>")
	require.Contains(t, string(b), ">validation</text>")
	b, err = os.ReadFile(lines)
	require.NoError(t, err)
	steps := 0
	for d := json.NewDecoder(bytes.NewReader(b)); d.More(); steps++ {
		var line map[string]any
		require.NoError(t, d.Decode(&line))
		require.Equal(t, float64(steps+1), line["step"])
		for _, name := range []string{"loss", "dt", "dtf", "dtb", "dto", "dtc", "dtx", "tps", "mfu"} {
			for _, of := range []string{"mean", "min", "max", "std"} {
				require.IsType(t, 0., line[name].(map[string]any)[of], "%s of %s", of, name)
			}
		}
		require.Equal(t, steps%2 == 1, line["validation"] != nil, "every second step")
	}
	require.Equal(t, 4, steps)
}

// A signal ends all ranks after the step under way. One that came before a rank was lost still ends the run that goes on without it.
func TestInterruptIsKept(t *testing.T) {
	var out bytes.Buffer
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		c := words(t, small+"3")
		require.NoError(t, c.place(2))
		stop := make(chan os.Signal, 1)
		r := &run{stop: stop, out: io.Discard}
		if world.Rank() == 0 {
			r.out = &out
		} else {
			stop <- os.Interrupt
		}
		for again := range 3 { // as keepOn does
			if again == 2 && world.Rank() == 1 { // the rank that had the signal is lost
				r = &run{out: io.Discard}
			}
			require.NoError(t, r.train(t.Context(), world, c))
		}
	})
	require.Equal(t, 3, strings.Count(out.String(), "interrupted after step 1\n"), out.String())
}
