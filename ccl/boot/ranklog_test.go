package boot

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each rank's output is in a file of its own, as it is, also where it is shown to nobody.
func TestSpawnLogs(t *testing.T) {
	noLeaks(t)
	for _, shown := range []bool{true, false} {
		c, out := troupe(t, 2, "echo")
		c.Logs, c.Prefix = filepath.Join(t.TempDir(), "a", "b"), true
		if !shown {
			c.Stdout, c.Stderr = nil, nil
		}
		require.NoError(t, Spawn(within(t, long), c))
		for r := range 2 {
			text, err := os.ReadFile(filepath.Join(c.Logs, fmt.Sprintf("rank-%d.log", r)))
			require.NoError(t, err)
			require.ElementsMatch(t, strings.Split(fmt.Sprintf("\"\"err of %d\n", r), ""), strings.Split(string(text), ""), "two streams, in any order")
		}
		require.Equal(t, shown, out.Len() > 0)
	}
	c, _ := troupe(t, 1, "echo")
	c.Logs = filepath.Join(os.Args[0], "in a file")
	require.ErrorContains(t, Spawn(within(t, long), c), "the directory for the ranks' logs cannot be made")
}

// A log on a full disk does not end its rank, and is told of.
func TestSpawnLogIsFull(t *testing.T) {
	f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("hardware: no /dev/full")
	}
	defer f.Close()
	s := &spawn{logs: []*rankLog{nil, {f: f}}}
	l := &lines{out: &s.out, to: io.Discard, log: s.logs[1]}
	require.NoError(t, s.logFailed())
	for range 2 {
		n, err := l.Write([]byte("a line\n"))
		require.NoError(t, err)
		require.Equal(t, 7, n)
	}
	require.ErrorContains(t, s.logFailed(), "the log of rank 1 is not complete: ")
}
