package offload_test

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/offload"
	"github.com/goccl/goccl/train/zero"
)

var kills = flag.Int("kills", 8, "how often TestKilledInSave kills a process")

// resume makes a model of the newest checkpoint in dir, and says of which step it is: 0 of none.
func resume(t testing.TB, c *ccl.Comm, dir string, disk *offload.Options) (x *toy[ccl.BFloat16, float32], step int) {
	x = newToy[ccl.BFloat16, float32](t, c, disk, zero.Options{Stage: 3})
	from, passed, err := ckpt.Latest(t.Context(), c, dir)
	if from == "" {
		require.ErrorIs(t, err, os.ErrNotExist)
		return x, 0
	}
	require.NoError(t, err)
	require.Empty(t, passed)
	list, err := x.m.Tensors(nil, x.states()...)
	require.NoError(t, err)
	require.NoError(t, ckpt.Load(t.Context(), c, from, &step, list))
	require.NoError(t, x.m.Loaded(t.Context()))
	return x, step
}

// A process that trains on a Disk, saves each step and keeps two, and is killed and started again at any time, loses no
// step that was saved: what is found is whole, and has the bits of a training in memory that nobody has killed.
func TestKilledInSave(t *testing.T) {
	dir, scratch := t.TempDir(), t.TempDir()
	ccltest.Run(t, 1, func(tb testing.TB, c *ccl.Comm) {
		want, at := newToy[ccl.BFloat16, float32](tb, c, nil, zero.Options{Stage: 3}), 0
		rnd := rand.New(rand.NewPCG(1, 2))
		saved, unsaid := 0, 0
		for n := range *kills {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledInSaveChild$")
			cmd.Env = append(os.Environ(), "OFFLOAD_TEST_SAVE="+dir, "TMPDIR="+scratch)
			out, err := cmd.StdoutPipe()
			require.NoError(tb, err)
			require.NoError(tb, cmd.Start())
			lines := bufio.NewScanner(out)
			for range 1 + rnd.IntN(2) {
				require.True(tb, lines.Scan())
				require.Regexp(tb, `^saved \d+$`, lines.Text())
			}
			time.Sleep(time.Duration(rnd.IntN(120_000)) * time.Microsecond) // anywhere in the next steps and Saves
			require.NoError(tb, cmd.Process.Kill())
			for last := lines.Text(); ; last = lines.Text() {
				if strings.HasPrefix(last, "saved ") {
					_, err := fmt.Sscanf(last, "saved %d", &saved)
					require.NoError(tb, err)
				}
				if !lines.Scan() {
					break
				}
			}
			require.ErrorContains(tb, cmd.Wait(), "killed")
			x, step := resume(tb, c, dir, nil)
			require.GreaterOrEqual(tb, step, saved, "kill %d", n)
			if step > saved {
				unsaid++
			}
			for at < step {
				at++
				require.NoError(tb, want.step(tb, c, at, 1))
			}
			require.Equal(tb, at, step)
			require.Equal(tb, hash(want.params(tb)), hash(x.params(tb)), "step %d", step)
			require.Equal(tb, [2]int64{hash(want.mean[0]), hash(want.squ[0])}, [2]int64{hash(x.mean[0]), hash(x.squ[0])})
			x.close(tb)
			left, err := filepath.Glob(filepath.Join(scratch, "*", "*", "goccl-rank*"))
			require.NoError(tb, err)
			require.Empty(tb, left)
		}
		tb.Logf("%d kills, %d steps, %d of them found that were not yet said to be saved", *kills, at, unsaid)
		want.close(tb)
	}, ccltest.Deadline(9*time.Minute))
}

// TestKilledInSaveChild is the process that TestKilledInSave kills.
func TestKilledInSaveChild(t *testing.T) {
	dir := os.Getenv("OFFLOAD_TEST_SAVE")
	if dir == "" {
		t.Skip("-short: a part of TestKilledInSave")
	}
	c, err := ccl.NewComm(context.Background(), boot.Local(1)[0], nil)
	require.NoError(t, err)
	x, n := resume(t, c, dir, &offload.Options{States: 2, Bucket: 1})
	list, err := x.m.Tensors(nil, x.states()...)
	require.NoError(t, err)
	for {
		n++
		require.NoError(t, x.step(t, c, n, 1))
		require.NoError(t, ckpt.Save(t.Context(), c, ckpt.Step(dir, n), n, list))
		fmt.Println("saved", n)
		require.NoError(t, ckpt.Keep(t.Context(), c, dir, 2))
	}
}
