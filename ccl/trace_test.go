package ccl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// GOCCL_TRACE gets the recorder of every rank when a Comm fails and when one is closed, and where all stood.
func TestTraceIsWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "trace")
	t.Setenv("GOCCL_TRACE", dir)
	world(t, 2, nil, func(int) *ccl.Options { return &ccl.Options{Timeout: 700 * time.Millisecond} }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		part, err := c.Split(ctx, 0, 0)
		require.NoError(t, err)
		part.SetName("part")
		works(ctx, t, part)
		require.NoError(t, part.Close())
		if c.Rank() == 1 {
			<-c.Done()
			return
		}
		wants(t, ccl.Broadcast(ctx, c, make([]int32, 3), 1), ccl.ErrTimeout)
	})
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	info, err := os.Stat(files[0])
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	text, err := os.ReadFile(files[0])
	require.NoError(t, err)
	count := map[string]int{}
	for l := range strings.Lines(string(text)) {
		var line struct {
			Version int `json:"goccl_trace"`
			Comm    string
			Rank    int
			Why     string
			Code    string
			Peer    *int
			Doing   string
			Clock   int64 `json:"clock_ns"`
			Calls   []struct {
				Seq  uint64
				Kind string
				End  int64 `json:"end_ns"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(l), &line), l)
		assert.Equal(t, 1, line.Version)
		if line.Why == "failure" { // after a timeout
			assert.Greater(t, line.Clock, int64(100*time.Millisecond))
		}
		for _, k := range line.Calls {
			assert.LessOrEqual(t, k.End, line.Clock+int64(time.Second), "the clock of the calls")
		}
		count[line.Why+" "+line.Comm+" "+line.Doing]++
		if line.Why == "failure" {
			assert.Equal(t, "timed out", line.Code)
			assert.Equal(t, 1, *line.Peer)
			assert.Equal(t, "Split", line.Calls[0].Kind)
			assert.Len(t, line.Calls, 2-line.Rank)
		}
	}
	assert.Equal(t, map[string]int{"exit part ": 2, "failure world ": 2, "standing world waits": 1, "standing world outside": 1}, count)
}

// Where somebody else has made the files that a rank would write, or links of their names to other files, these stay as they
// are, and the traces are in new ones.
func TestTraceFollowsNoLink(t *testing.T) {
	dir, own := t.TempDir(), filepath.Join(t.TempDir(), "authorized_keys")
	require.NoError(t, os.WriteFile(own, []byte("a key\n"), 0o600))
	host, err := os.Hostname()
	require.NoError(t, err)
	planted := map[string]bool{}
	for rank, target := range []string{own, filepath.Join(filepath.Dir(own), "not there yet")} {
		path := filepath.Join(dir, fmt.Sprintf("rank%d-%s-%d.jsonl", rank, host, os.Getpid()))
		require.NoError(t, os.Symlink(target, path))
		planted[path] = true
	}
	t.Setenv("GOCCL_TRACE", dir)
	world(t, 2, nil, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) { works(ctx, t, c) })
	text, err := os.ReadFile(own)
	require.NoError(t, err)
	require.Equal(t, "a key\n", string(text))
	require.NoFileExists(t, filepath.Join(filepath.Dir(own), "not there yet"))
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	lines := 0
	for _, f := range files {
		if planted[f] {
			continue
		}
		info, err := os.Stat(f)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		text, err := os.ReadFile(f)
		require.NoError(t, err)
		lines += strings.Count(string(text), "\n")
	}
	require.Equal(t, 2, lines, "each rank's, at its end")
}
