//go:build xla && cgo && linux

package loop

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/train/amp"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

const rows, tokens = 4, 8

func small() *nn.Model {
	c, err := models.Parse([]byte(`{"model_type":"llama","vocab_size":32,"hidden_size":32,"intermediate_size":32,
		"num_hidden_layers":1,"num_attention_heads":2,"num_key_value_heads":2}`))
	if err != nil {
		panic(err)
	}
	return c.Model()
}

// batches are the rows of a rank at a step, which are the same however they are split.
func batches(world *ccl.Comm, step int) []fit.Batch {
	var b fit.Batch
	n := rows / world.Size()
	for row := range n {
		rnd := rand.New(rand.NewPCG(uint64(step), uint64(world.Rank()*n+row)))
		x := rnd.Int32N(32)
		for range tokens {
			b.Tokens = append(b.Tokens, x)
			x = (x*5 + 3 + rnd.Int32N(2)) % 32
			b.Wanted = append(b.Wanted, x)
		}
	}
	return []fit.Batch{b}
}

// train is a rank's run at a stage of ZeRO, on the ranks that there are when others are lost. It returns what rank 0
// says.
func train(t testing.TB, world *ccl.Comm, r *Run, stage int, scale *amp.Options) (said string, left *ccl.Comm,
	err error) {
	path := xlatest.Path(t)
	var out bytes.Buffer
	r.O.Out = &out
	if r.O.Rate == nil {
		r.O.Rate = func(int) float64 { return 1e-2 }
	}
	left, err = r.Keep(t.Context(), world, Divide(rows, 1), func(ctx context.Context, world *ccl.Comm) error {
		r.O.Batches = func(step int) ([]fit.Batch, error) { return batches(world, step), nil }
		if r.O.EvalEvery > 0 {
			r.O.Held = batches(world, 1000)
		}
		o := &machine.Options{Plugin: path, Client: "cpu_device_count=1", Share: true,
			Flags: "xla_backend_optimization_level=0"}
		return r.On(ctx, world, o, func(m *machine.Machine) (*fit.Trainer, error) {
			return fit.New(ctx, m, small(), &fit.Options{Rows: rows / world.Size(), Tokens: tokens, Stage: stage, Seed: 1,
				Scale: scale, Adam: optim.AdamW{Beta1: .9, Beta2: .95, Eps: 1e-6}})
		})
	})
	return out.String(), left, err
}

// run is train on n ranks, of which rank 0 counts.
func run(t *testing.T, n, stage int, o Options, scale ...*amp.Options) (r *Run, said string) {
	t.Helper()
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		mine := &Run{O: o}
		text, _, err := train(t, c, mine, stage, append(scale, nil)[0])
		require.NoError(t, err)
		if c.Rank() == 0 {
			r, said = mine, text
		}
	}, ccltest.Deadline(3*time.Minute))
	return r, said
}

// A spare takes the place of a rank that is lost, from the state that the others have mirrored, and the run has the
// losses of one that lost none, to the bit. Where no spare is left, those that are left go on from a checkpoint.
func TestSpares(t *testing.T) {
	want, _ := run(t, 2, 3, Options{Steps: 6})
	for _, tc := range []struct {
		name   string
		spares int
		size   int
		say    string
	}{
		{"a spare", 1, 2, "which was mirrored"},
		{"none left", 0, 1, "resumed from step "},
	} {
		if testing.Short() && tc.spares == 0 {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			ended := make(chan struct{}, 4)
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				first := c.Rank() == 0
				r := &Run{O: Options{Steps: 6, Mirror: 1, Recover: true, Save: dir, Every: 1, Keep: 2}}
				said, left, err := train(t, c, r, 3, nil)
				require.NoError(t, err)
				require.Equal(t, tc.size, left.Size())
				got := r.Losses[len(r.Losses)-1]
				if tc.size == 2 {
					require.Equal(t, want.Losses[5], got)
				} else {
					require.InDelta(t, want.Losses[5], got, 1e-5)
				}
				if first {
					require.Contains(t, said, "rank 1")
					require.Contains(t, said, tc.say)
				}
				ended <- struct{}{}
			}, ccltest.Spares(tc.spares), ccltest.Kill(1, 150), ccltest.Deadline(3*time.Minute))
			require.Len(t, ended, tc.size)
		})
	}
}

// A rank is lost with the one that holds its state: all go on from a checkpoint, with spares in their places.
func TestStateIsLost(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: four ranks and two spares")
	}
	want, _ := run(t, 4, 3, Options{Steps: 4})
	o := Options{Steps: 4, Mirror: 1, Save: t.TempDir(), Every: 1, Keep: 2}
	ended := make(chan struct{}, 6)
	ccltest.Run(t, 4, func(t testing.TB, c *ccl.Comm) {
		first := c.Rank() == 0
		r := &Run{O: o}
		said, left, err := train(t, c, r, 3, nil)
		require.NoError(t, err)
		require.Equal(t, 4, left.Size())
		require.InDelta(t, want.Losses[3], r.Losses[len(r.Losses)-1], 1e-5)
		if first {
			require.Contains(t, said, "the state of a rank is lost")
			require.Contains(t, said, "resumed from step ")
		}
		ended <- struct{}{}
	}, ccltest.Spares(2), ccltest.Kill(1, 150), ccltest.Kill(2, 150), ccltest.Deadline(3*time.Minute))
	require.Len(t, ended, 4)
}

// A run ends when the held-out score has been no better for so many steps, also if it was saved and resumed meanwhile
// on another number of ranks; the best checkpoint has the best score.
func TestEarlyStop(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: four runs")
	}
	rate := func(step int) float64 {
		if step > 3 {
			return -1e-2 // away from what was learned
		}
		return 1e-2
	}
	o := Options{Steps: 20, Rate: rate, EvalEvery: 1, Patience: 2, Best: filepath.Join(t.TempDir(), "best")}
	want, said := run(t, 1, 0, o)
	require.Contains(t, said, "no better than step 3 for 2 scores: ending after step 5\n")
	require.Equal(t, 3, want.BestStep)
	require.Len(t, want.Losses, 5)
	require.Len(t, want.Scores, 6, "the first is that of the beginning")
	require.Equal(t, want.Scores[3].Loss, want.BestScore)

	o.Save, o.Every, o.Keep, o.Best = filepath.Join(t.TempDir(), "saved"), 2, 1, filepath.Join(t.TempDir(), "best")
	o.Steps = 4
	before, _ := run(t, 2, 3, o)
	require.InDeltaSlice(t, want.Losses[:4], before.Losses, 1e-5)
	o.Steps, o.Resume = 20, true
	after, said := run(t, 1, 0, o)
	require.Contains(t, said, "resumed from step 4")
	require.Contains(t, said, "no better than step 3 for 2 scores: ending after step 5\n")
	require.InDeltaSlice(t, want.Losses[4:], after.Losses, 1e-5)
	require.InDelta(t, want.BestScore, after.BestScore, 1e-5)
	entries, err := os.ReadDir(o.Best)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Equal(t, "step-00000003", entries[0].Name())
	var best fit.Score
	_, said = run(t, 4, 2, Options{Steps: 3, Save: o.Best, Keep: 1, Resume: true,
		End: func(ctx context.Context, x *fit.Trainer) error {
			s, err := x.Eval(ctx, batches(x.Machine().World(), 1000))
			if x.Machine().World().Rank() == 0 {
				best = s
			}
			return err
		}})
	require.Contains(t, said, "resumed from step 3")
	require.InDelta(t, want.BestScore, best.Loss, 1e-5)
}

// The scale of the loss, and how long it has been good, are in checkpoints.
func TestScaleIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: two runs")
	}
	var state amp.State
	o := Options{Steps: 3, Save: filepath.Join(t.TempDir(), "saved"), Keep: 1,
		End: func(_ context.Context, x *fit.Trainer) error {
			if x.Machine().World().Rank() == 0 {
				state = x.Scaler().State()
			}
			return nil
		}}
	scale := &amp.Options{Init: 16, Interval: 2}
	run(t, 1, 0, o, scale)
	require.Equal(t, amp.State{Scale: 32, Good: 1}, state)
	o.Steps, o.Resume = 4, true
	run(t, 2, 3, o, scale)
	require.Equal(t, amp.State{Scale: 64}, state)
}

// What is frozen is in no checkpoint: a run of adapters that is resumed begins with the same base as the one before.
func TestResumedAdapters(t *testing.T) {
	dir, o := t.TempDir(), fit.Options{Rows: rows, Tokens: tokens, Seed: 1, Adam: optim.AdamW{Beta1: .9, Beta2: .95, Eps: 1e-6}}
	base, saved := filepath.Join(dir, "base"), filepath.Join(dir, "saved")
	lora := func(seed uint64, of Options) (losses []float64) {
		ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
			r, m := &Run{O: of}, small()
			r.O.Rate = func(int) float64 { return 1e-2 }
			r.O.Batches = func(step int) ([]fit.Batch, error) { return batches(c, step), nil }
			m.LoRA = &nn.LoRA{Rank: 2, Scale: 1, Has: func(string) bool { return true }}
			o := o
			o.Seed = seed
			require.NoError(t, r.On(t.Context(), c, &machine.Options{Plugin: xlatest.Path(t), Client: "cpu_device_count=1",
				Flags: "xla_backend_optimization_level=0"}, func(m2 *machine.Machine) (*fit.Trainer, error) {
				return fit.New(t.Context(), m2, m, &o)
			}))
			losses = r.Losses
		}, ccltest.Deadline(3*time.Minute))
		return losses
	}
	lora(2, Options{Steps: 1, End: func(ctx context.Context, x *fit.Trainer) error { return x.Export(ctx, base, 0) }})
	begin := func(ctx context.Context, x *fit.Trainer) error { return x.LoadModel(ctx, base) }
	want := lora(1, Options{Steps: 4, Begin: begin})
	lora(1, Options{Steps: 2, Begin: begin, Save: saved, Keep: 1})
	require.InDeltaSlice(t, want[2:], lora(1, Options{Steps: 4, Begin: begin, Save: saved, Keep: 1, Resume: true}), 1e-5)
}

// The score of the beginning is one to beat, also in a run that is resumed; and a run that comes once more to the step
// of its best score writes that checkpoint anew.
func TestBestIsKept(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: four runs")
	}
	dir := t.TempDir()
	o := Options{Steps: 2, EvalEvery: 1, Save: filepath.Join(dir, "saved"), Keep: 1, Best: filepath.Join(dir, "best"),
		Rate: func(int) float64 { return -1e-2 }} // away from what was learned
	first, _ := run(t, 1, 0, o)
	o.Steps, o.Resume = 3, true
	then, _ := run(t, 1, 0, o)
	require.Zero(t, then.BestStep)
	require.Equal(t, first.Scores[0].Loss, then.BestScore)
	require.Equal(t, []string{"step-00000000"}, names(t, o.Best))

	require.NoError(t, os.RemoveAll(o.Save))
	o.Steps, o.Resume, o.Rate = 2, false, nil
	for range 2 {
		run(t, 1, 0, o)
		require.Equal(t, []string{"step-00000002"}, names(t, o.Best))
		require.NoError(t, os.RemoveAll(o.Save))
	}
}

func names(t *testing.T, dir string) (list []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

// A directory that has checkpoints of another run is refused before that of this one is computed.
func TestTakenDirectory(t *testing.T) {
	o := Options{Steps: 1, Save: filepath.Join(t.TempDir(), "saved"), Keep: 1}
	run(t, 1, 0, o)
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		r := &Run{O: o}
		_, _, err := train(t, c, r, 0, nil)
		require.ErrorContains(t, err, "saved has step-00000001: resume from it, or name another directory")
		require.Empty(t, r.Losses)
	}, ccltest.Deadline(3*time.Minute))
}
