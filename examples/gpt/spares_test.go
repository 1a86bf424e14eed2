package main

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/history"
)

// linesOf are the losses in a file of metrics, of which each step has one line.
func linesOf(t *testing.T, name string, steps int) (all []float64) {
	raw, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, steps, strings.Count(string(raw), "\n"), "%.300s", raw)
	read, err := history.Read(strings.NewReader(string(raw)))
	require.NoError(t, err)
	for step, s := range read.Series("loss") {
		require.Equal(t, len(all)+1, step)
		all = append(all, s.Mean)
	}
	require.Len(t, all, steps)
	return all
}

// A rank that is killed is replaced, whoever it is: the losses are those of a run in which nobody is, to the bit, each step has one
// line, nothing is read from a disk, and the program ends well.
func TestReplaced(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("reads /proc: nothing to do here")
		return
	}
	const steps = "200 -np 4 -log 1 " // so many that the rank is killed long before the last
	for _, tc := range []struct {
		name, flags string
		victims     []int
		said        string
	}{
		{"one of the replicas", "-zero 0", []int{0}, `\nrank 0 lost: its process ended; replaced by 1 spare in \d+ ms, from step \d+: `},
		{"two shards", "-zero 3", []int{1, 3}, `\nranks 1 and 3 lost: .*; replaced by 2 spares in \d+ ms, from step \d+: `},
		{"every fourth step", "-tp 2 -zero 1 -mirror 4", []int{2}, `\nrank 2 lost: .*; replaced by 1 spare in \d+ ms, from step \d*[02468]: `},
		{"sites that train apart", "-zero 1 -outer every=4,sites=2,delay=2,mix=.5", []int{3}, `\nrank 3 lost: .*; replaced by 1 spare in \d+ ms, from step \d+: `},
	} {
		if testing.Short() && tc.name != "two shards" {
			continue
		}
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			run := func(file string, victims ...int) (json, said string) {
				json = filepath.Join(dir, file)
				cmd, out := program(t, small+steps+"-spares 2 "+tc.flags+" -json "+json)
				require.NoError(t, cmd.Start())
				if victims != nil {
					until(t, out, "step=7 ")
					kill(t, cmd, 6, victims...)
				}
				require.NoError(t, cmd.Wait(), "%s", out)
				return json, out.String()
			}
			plain, _ := run("plain")
			healed, said := run("healed", tc.victims...)
			require.Equal(t, linesOf(t, plain, 200), linesOf(t, healed, 200), "%.9000s", said)
			if len(tc.victims) == 1 { // else one may be replaced before the other is lost
				require.Regexp(t, tc.said, said)
				require.Equal(t, 1, strings.Count(said, "replaced by"), said)
			}
			require.Contains(t, said, "replaced by")
			require.Equal(t, 1, strings.Count(said, "training a GPT-2"), said)
		})
	}
}

// Where a state and its copy are lost together all ranks say so, and the program fails; with checkpoints it goes on from the last.
func TestOwnerAndHolderLost(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("reads /proc: nothing to do here")
		return
	}
	for _, save := range []bool{false, true} {
		if testing.Short() && !save {
			continue
		}
		dir := t.TempDir()
		json := filepath.Join(dir, "json")
		flags := small + "200 -np 4 -log 1 -zero 1 -spares 2 -json " + json
		if save {
			flags += " -every 5 -save " + filepath.Join(dir, "c")
		}
		cmd, out := program(t, flags)
		require.NoError(t, cmd.Start())
		until(t, out, "step=7 ")
		if save {
			saved := func() bool { at, _ := filepath.Glob(filepath.Join(dir, "c", "step-????????")); return len(at) > 0 }
			require.Eventually(t, saved, time.Minute, time.Millisecond, "no checkpoint")
		}
		kill(t, cmd, 6, 1, 2)
		err := cmd.Wait()
		if !save {
			exits(t, 1, err, out)
			require.Equal(t, 4, strings.Count(out.String(), "gpt: mirror: the state of rank 1 in step "), "all that are left: %s", out)
			continue
		}
		require.NoError(t, err, "%s", out)
		require.Contains(t, out.String(), "the state of a rank is lost\n")
		require.Regexp(t, `going on with 4 ranks from .*step-00000\d\d[05] after [0-9.]+ s`, out)
		linesOf(t, json, 200)
	}
}

// Ranks are replicas if they have the same stage and the same part of the layers, and keep whole optimizer state.
func TestReplicasOf(t *testing.T) {
	for flags, want := range map[string][]int{
		"-np 4": {0, 0, 0, 0}, "-np 4 -zero 1": nil, "-np 4 -tp 4": nil, "-np 4 -tp 2": {0, 1, 0, 1}, "-np 4 -pp 2": {0, 1, 0, 1},
		"-np 8 -pp 2 -tp 2": {0, 1, 2, 3, 0, 1, 2, 3}, "-np 8 -pp 2 -sp ring=2": {0, 0, 1, 1, 0, 0, 1, 1}, "-np 4 -pp 2 -sp ring=2": {0, 0, 1, 1},
	} {
		c := words(t, small+"1 "+flags)
		of := c.replicas()
		if want == nil {
			require.Nil(t, of, flags)
			continue
		}
		for r, k := range want {
			require.Equal(t, k, of(r), "%s: rank %d", flags, r)
		}
	}
}

// healed trains on n ranks that a spare waits for, which come to the end, or to an error with these words.
func healed(t *testing.T, n int, args, failed string, opts ...ccltest.Option) {
	ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
		c := words(t, args)
		c.spares = 1
		require.NoError(t, c.place(n))
		r := &run{out: io.Discard}
		last, err := keepOn(t.Context(), world, c, r)
		if require.NoError(t, last.Close()); failed != "" {
			require.ErrorContains(t, err, failed)
			return
		}
		require.NoError(t, err)
		require.True(t, r.tells(last.Rank()), "rank %d knows that all work is done", last.Rank())
	}, append(opts, ccltest.Spares(1))...)
}

// A spare takes a rank's place before whichever of its calls that is lost, in every layout; all come to the end, and rank 0 has the
// losses of an undisturbed run.
func TestReplacedAnywhere(t *testing.T) {
	layouts := []string{"-zero 0", "-zero 1", "-zero 2 -bf16", "-zero 3 -micro 2", "-tp 2", "-pp 2 -micro 2", "-sp ring=2 -zero 1", "-zero 0 -bf16"}
	kills := []int{3, 20, 60, 90, 130, 170}
	if testing.Short() {
		layouts, kills = layouts[:2], []int{90}
	}
	for _, layout := range layouts {
		t.Run(layout, func(t *testing.T) {
			run := func(name string, opts ...ccltest.Option) []float64 {
				file := filepath.Join(t.TempDir(), name)
				healed(t, 4, "-layers 2 -width 16 -heads 4 -context 8 -rows 8 -lr 3e-3 -steps 6 -json "+file+" "+layout, "", opts...)
				return linesOf(t, file, 6)
			}
			want := run("plain")
			for i, nth := range kills {
				require.Equal(t, want, run("healed", ccltest.Kill(i%4, nth)), "rank %d before its call %d", i%4, nth)
			}
		})
	}
}

// However late a rank is lost, the run ends well and with its last checkpoint. Those behind which a replacement goes back are not
// saved twice, and one that the loss has cost is saved again, that of the last step, too. Rank 0 lives: as a goroutine it would
// tidy the directory after its death.
func TestReplacedWithCheckpoints(t *testing.T) {
	for flags, kills := range map[string][]int{
		"-mirror 4 -every 2": {112, 125, 130, 138}, // the last of them after step 4, which is mirrored
		"-mirror 5 -every 1": {100, 130},           // which go back to the beginning
	} {
		if testing.Short() {
			kills = kills[len(kills)-2:]
		}
		for _, nth := range kills {
			dir := filepath.Join(t.TempDir(), "c")
			healed(t, 2, "-layers 1 -width 8 -heads 1 -context 8 -rows 4 -zero 1 -steps 4 -save "+dir+" "+flags, "", ccltest.Kill(1, nth))
			require.FileExists(t, filepath.Join(dir, "step-00000004", "index.json"), "%s: rank 1 before its call %d", flags, nth)
		}
	}
}

// What is in the memory of one rank alone is refused where that rank may be replaced.
func TestSparesRefuse(t *testing.T) {
	for _, flag := range []string{"-csv f", "-svg f", "-norms"} {
		_, err := parse(strings.Fields("-spares 1 "+flag), io.Discard)
		require.ErrorContains(t, err, strings.Fields(flag)[0]+" begins anew when a rank is replaced")
		c, err := parse(strings.Fields(flag), io.Discard)
		require.NoError(t, err)
		require.NoError(t, c.adopt(4, 4))
		c, err = parse(strings.Fields(flag), io.Discard)
		require.NoError(t, err)
		require.ErrorContains(t, c.adopt(4, 5), "with spares leave it out")
	}
}

// What no spare can mend ends the run, and the checkpoint that is under way is whole before that.
func TestSparesEndWell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "c")
	healed(t, 2, small+"3 -zero 1 -every 1 -clip 0 -lr 1e20 -save "+dir, "not finite")
	require.FileExists(t, filepath.Join(dir, "step-00000001", "index.json"))
}

// A trainer that has not come to the state of the one before does not take its place: where all ranks hold the same, that is the
// only one that has it.
func TestStateIsKept(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
		begun(t, world, "", 1, func(has *trainer) {
			begun(t, world, "", 1, func(placed *trainer) {
				has.cfg.spares, placed.cfg.spares = 1, 1
				r := &run{}
				require.Equal(t, io.EOF, r.leave(has, io.EOF))
				require.Equal(t, io.EOF, r.leave(placed, io.EOF))
				require.Same(t, has, r.kept.old)
				r.kept.closing.Wait()
				require.NoError(t, r.kept.close())
			})
		})
	})
}

func TestLostRanks(t *testing.T) {
	got := []string{lostRanks([]int{3}), lostRanks([]int{0, 2}), lostRanks([]int{0, 2, 3})}
	require.True(t, slices.Equal(got, []string{"rank 3", "ranks 0 and 2", "ranks 0, 2 and 3"}), "%q", got)
}
