package main

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ddp"
)

// Sites of several ranks, in whatever layout, train as sites of one rank each do.
func TestSites(t *testing.T) {
	const flags = "-outer every=3,delay=1,mix=.5,sites=2" // without fragments, which shards and stages cut elsewhere
	want := losses(t, 2, 14, flags)
	for layout, ranks := range map[string]int{"": 4, "-zero 1": 4, "-zero 3": 4, "-pp 2 -micro 2 -zero 1": 8, "-tp 2": 4, "-sp ring=2": 4} {
		require.InDeltaSlice(t, want, losses(t, ranks, 14, flags+" "+layout), 2e-5, "%s", layout)
	}
	require.Less(t, want[13], want[0])
}

// outerHash is what rank 0 has of the outer parameters, and all ranks of one place have alike.
func outerHash(t testing.TB, tr *trainer) uint64 {
	require.NoError(t, tr.comms.sites.flush(t.Context()))
	require.NoError(t, tr.comms.sites.u.Same(t.Context()))
	return tr.comms.sites.u.Hash()
}

// A run that is resumed from a checkpoint, in the same layout, has the bits of one that was not interrupted. With other sites, or
// without, it goes on from the outer parameters, as a sample does.
func TestSitesResume(t *testing.T) {
	const flags = "-outer every=4,delay=2,mix=.5,codec=int8 -zero 1"
	dir := t.TempDir()
	var whole, halves uint64
	train := func(t testing.TB, tr *trainer, from, to int) {
		for step := from + 1; step <= to; step++ {
			_, _, err := tr.step(t.Context(), step)
			require.NoError(t, err)
		}
	}
	ccltest.Run(t, 2, func(t testing.TB, world *ccl.Comm) {
		begun(t, world, flags, 12, func(tr *trainer) {
			tr.cfg.save, tr.cfg.keep = dir, 3
			s, err := newSaver(t.Context(), tr)
			require.NoError(t, err)
			train(t, tr, 0, 5) // an exchange is under way
			require.NoError(t, s.begin(t.Context(), 5))
			train(t, tr, 5, 12)
			require.NoError(t, s.Finish(t.Context()))
			require.NoError(t, s.Close(t.Context()))
			h := outerHash(t, tr)
			if world.Rank() == 0 {
				whole = h
			}
		})
	})
	path := ckpt.Step(dir, 5)
	resume := func(ranks int, flags string, then func(t testing.TB, tr *trainer)) {
		ccltest.Run(t, ranks, func(t testing.TB, world *ccl.Comm) {
			begun(t, world, flags, 12, func(tr *trainer) {
				step, _, err := tr.load(t.Context(), path)
				require.NoError(t, err)
				require.Equal(t, 5, step)
				then(t, tr)
			})
		})
	}
	resume(2, flags, func(t testing.TB, tr *trainer) {
		train(t, tr, 5, 12)
		if h := outerHash(t, tr); tr.world.Rank() == 0 {
			halves = h
		}
	})
	require.Equal(t, whole, halves)
	var params uint64
	resume(4, strings.Replace(flags, "-outer ", "-outer sites=4,", 1), func(t testing.TB, tr *trainer) {
		h := ddp.Hash(tr.comms.sites.u.Params()...)
		if tr.world.Rank() == 0 {
			params = h
		}
		train(t, tr, 5, 12)
		outerHash(t, tr)
	})
	resume(1, "", func(t testing.TB, tr *trainer) {
		var all [][]float32
		for i := range tr.units {
			all = append(all, tr.model.Shard(i))
		}
		require.Equal(t, params, ddp.Hash(all...))
		train(t, tr, 5, 7)
	})
}

func TestOuterFlag(t *testing.T) {
	for text, want := range map[string]string{
		"every=5,sites":                         "sites is none of every=N",
		"every=x":                               `every=x: strconv.Atoi: parsing "x": invalid syntax`,
		"every=5,codec=int3":                    `"int3" is no codec`,
		"delay=3":                               "outer: Every is 0 inner steps; give at least 1",
		"every=5,sites=-1":                      "sites=-1: give at least 1",
		"every=5,mix=2":                         "outer: Mix is 2; it is from 0 to 1",
		"every=5,fragments=9223372036854775807": "fragments=9223372036854775807: give at most 16384",
		"every=5,fragments=9999":                "outer: 9999 Fragments do not fit 5 inner steps",
	} {
		_, err := parse([]string{"-outer", text}, &strings.Builder{})
		require.ErrorContains(t, err, want)
	}
	c := words(t, small+"1 -outer every=5,sites=3")
	require.EqualError(t, c.place(4), "-outer sites=3 does not divide 4 replicas; sites=2 does")
	_, err := parse(strings.Fields(small+"1 -outer every=5 -norms"), &strings.Builder{})
	require.ErrorContains(t, err, "-norms compares the gradients of all ranks")
}

var curves = flag.Int("curves", 0, "TestCurves trains a small model so often, with other weights and rows each time, and holds what training apart costs to what is promised")

// What training apart costs in loss after the same inner steps, on 4 ranks, and what it sends.
func TestCurves(t *testing.T) {
	steps, seeds := 3000, *curves
	if seeds == 0 {
		if testing.Short() {
			t.Skip("-short: it trains 4 models")
		}
		steps, seeds = 150, 1 // three rounds of every fragment: what they cost at first; what it costs in the end shows later
	}
	const batches = 64
	cases := []struct {
		name, flags string
		more        float64 // loss than the first, at most
		than        int
		bytes       float64 // of the first's, at most
	}{
		{"ddp", "", 0, 0, 1},
		{"H=10", "-outer every=10", .02, 0, 1. / 9.9},
		{"H=50", "-outer every=50", .12, 0, 1. / 49},
		{"H=50, streaming, int4", "-outer every=50,fragments=5,delay=5,mix=.5,codec=int4", .07, 2, 1. / 300},
	}
	sums, bytes := make([]float64, len(cases)), make([]float64, len(cases))
	for seed := range seeds {
		for k, tc := range cases {
			ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
				c := words(t, fmt.Sprintf("-layers 2 -width 64 -heads 4 -context 64 -rows 16 -lr 2e-3 -warmup 50 -steps %d -seed %d %s", steps, seed+1, tc.flags))
				require.NoError(t, c.place(4))
				raw, err := read(source(""))
				require.NoError(t, err)
				text, err := newText("", raw, c.Context, 0)
				require.NoError(t, err)
				c.Vocab = text.vocab
				tr, err := newTrainer(t.Context(), world, c, text)
				require.NoError(t, err)
				sent := 0.
				for step := range steps {
					_, _, err := tr.step(t.Context(), step+1)
					require.NoError(t, err)
					sent += 2 * 3. / 4 * float64(tr.model.Stats().Reduced) / float64(steps)
				}
				if s := tr.comms.sites; s != nil {
					outerHash(t, tr)
					sent = float64(s.u.Stats().Bytes) / float64(steps)
				}
				tr.validate = true
				require.NoError(t, tr.comms.sites.within(t.Context(), func() {
					var loss float64
					for b := range batches {
						tr.feed(func(lo, hi int) (in, out []int32) {
							return text.unseen(batches*c.rows, b*c.rows+lo, b*c.rows+hi, c.Context)
						})
						l, err := tr.pass(t.Context())
						require.NoError(t, err)
						loss += l / batches
					}
					if world.Rank() == 0 {
						t.Logf("seed %d, %s: loss %.4f, %.0f bytes a step", seed+1, tc.name, loss, sent)
						sums[k], bytes[k] = sums[k]+loss/float64(seeds), sent
					}
				}))
				require.NoError(t, tr.close())
			}, ccltest.Deadline(time.Hour))
		}
	}
	for k, tc := range cases {
		t.Logf("%-24s loss %.4f (%+.4f), %8.0f bytes a step, 1/%.0f", tc.name, sums[k], sums[k]-sums[tc.than], bytes[k], bytes[0]/bytes[k])
	}
	for k, tc := range cases[1:] {
		if *curves == 0 {
			tc.more, tc.bytes = .25, 1.05*tc.bytes
		}
		require.LessOrEqual(t, sums[k+1], sums[tc.than]+tc.more, "%s", tc.name)
		require.LessOrEqual(t, bytes[k+1], bytes[0]*tc.bytes, "%s", tc.name)
	}
}
