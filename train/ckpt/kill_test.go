package ckpt

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
)

// big is a tensor whose part has several writes.
func big(value float32) []Tensor {
	return []Tensor{{Name: "x", Shape: []int{block / 4}, Data: slices.Repeat([]float32{value}, block/4)}}
}

// Killed before any write, sync or rename of a Save, it has left the old checkpoint or the new one, whole; the next Save
// of that step, and Keep, clear up.
func TestKilled(t *testing.T) {
	ccltest.Run(t, 1, func(tb testing.TB, c *ccl.Comm) {
		dir := t.TempDir()
		require.NoError(t, Save(t.Context(), c, Step(dir, 1), 1, big(1)))
		killed := 0
		for at := 1; ; at++ {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledChild$")
			cmd.Env = append(os.Environ(), fmt.Sprintf("GOCCL_CKPT_CHILD=%d %s", at, Step(dir, 2)))
			out, err := cmd.CombinedOutput()
			from, _, err2 := Latest(t.Context(), c, dir)
			require.NoError(t, err2)
			ts, state := big(0), 0
			require.NoError(t, Load(t.Context(), c, from, &state, ts))
			require.Equal(t, Step(dir, state), from)
			require.Equal(t, big(float32(state)), ts)
			if err == nil {
				require.Equal(t, 2, state)
				break
			}
			require.NotContains(t, string(out), "FAIL", "it is to be killed")
			killed++
			if state == 2 {
				require.NoError(t, os.RemoveAll(Step(dir, 2)))
			}
		}
		require.Equal(t, 10, killed, "what the one before has left; the header, two writes and the sync of the part; a write and the sync of the index; the directory; the rename; the directory above")
		require.NoError(t, os.MkdirAll(Step(dir, 1)+tmpSuffix+"1-"+ending, 0o777))
		require.NoError(t, Keep(t.Context(), c, dir, 1))
		require.Equal(t, []string{"step-00000002"}, names(t, dir))
	})
}

// ownName is what no other writer has.
var ownName = regexp.MustCompile(`\.tmp-\d+-[0-9a-f]{16}`)

// The directories that a Save makes above its own are as durable as what is in them: each new name is synced where it
// stands.
func TestNewDirectoriesAreSynced(t *testing.T) {
	ccltest.Run(t, 1, func(tb testing.TB, c *ccl.Comm) {
		dir := t.TempDir()
		var synced []string
		d := &disk{fault: func(op, path string) error {
			if op == "sync" {
				rel, err := filepath.Rel(dir, path)
				require.NoError(t, err)
				synced = append(synced, ownName.ReplaceAllString(rel, ".tmp"))
			}
			return nil
		}}
		require.NoError(t, save(t.Context(), c, d, filepath.Join(dir, "a", "b", "step-1"), nil, big(1)))
		require.Equal(t, []string{".", "a", "a/b/step-1.tmp/part-00001-of-00001.safetensors", "a/b/step-1.tmp/index.json", "a/b/step-1.tmp", "a/b"}, synced)
		synced = nil
		require.NoError(t, save(t.Context(), c, d, filepath.Join(dir, "a", "b", "step-2"), nil, big(1)))
		require.Len(t, synced, 4, "%v", synced)
	})
}

// TestKilledChild is the process that TestKilled kills.
func TestKilledChild(t *testing.T) {
	arg, dir, ok := strings.Cut(os.Getenv("GOCCL_CKPT_CHILD"), " ")
	if !ok {
		return // which is all that it does by itself
	}
	at, err := strconv.Atoi(arg)
	require.NoError(t, err)
	c, err := ccl.NewComm(t.Context(), boot.Local(1)[0], nil)
	require.NoError(t, err)
	d := nth(at, func(string, string) error {
		self, err := os.FindProcess(os.Getpid())
		require.NoError(t, err)
		require.NoError(t, self.Kill())
		select {}
	})
	require.NoError(t, save(t.Context(), c, d, dir, 2, big(2)))
}

// A rank that is lost in any call of a Save is named by the others, and Latest is the old checkpoint or the new one.
func TestLostInSave(t *testing.T) {
	const calls = 10 // of a Save
	for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "hosts": {ccltest.Hosts(3)}, "processes": {ccltest.Processes(3)}} {
		for call := 1; call <= calls+1; call++ {
			if testing.Short() && call%4 != 2 {
				continue
			}
			t.Run(fmt.Sprintf("%s, call %d", name, call), func(t *testing.T) {
				const where = "GOCCL_CKPT_LOST" // for the processes of the ranks, which run this, too
				dir := os.Getenv(where)
				if dir == "" {
					dir = t.TempDir() // which goes when all of them have ended
					t.Setenv(where, dir)
				}
				ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
					ctx := t.Context()
					err := Save(ctx, c, Step(dir, 1), 1, held(c.Rank(), 3, true))
					if c.Rank() == 1 {
						_ = ccl.Barrier(ctx, c) // where it is lost at the latest
						return
					}
					<-c.Done()
					require.ErrorIs(t, c.Err(), ccl.ErrRankLost)
					require.ErrorContains(t, c.Err(), "rank 1")
					if err != nil {
						require.ErrorIs(t, err, ccl.ErrRankLost)
						require.ErrorContains(t, err, "rank 1")
					}
					from, _, err := findLatest(&disk{}, dir)
					if c.Rank() != 0 || errors.Is(err, os.ErrNotExist) && call <= calls {
						return
					}
					require.NoError(t, err)
					ix, err := openIndex(folder(from))
					require.NoError(t, err)
					ts := held(0, 1, false)
					want, data, err := describe(ts)
					require.NoError(t, err)
					require.NoError(t, ix.fill(folder(from), want, data, false))
					require.Equal(t, held(0, 1, true), ts)
				}, append(opts, ccltest.Kill(1, call))...)
			})
		}
	}
}
