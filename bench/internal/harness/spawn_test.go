package harness

import (
	"errors"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/launch"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/environ"
)

// A rank tells by one variable who started it, and who has the screen.
func TestParent(t *testing.T) {
	for value, want := range map[string][3]bool{ // parented, spawned, watched
		"":                  {false, false, false},
		"yes ":              {true, true, false},
		"yes terminal":      {true, true, true},
		"launcher ":         {true, false, false},
		"launcher terminal": {true, false, true},
	} {
		t.Setenv(environ.BenchParent.Name, value)
		require.Equal(t, want, [3]bool{(&plan{}).parented(), spawned(), watched()}, value)
	}
}

func TestKnown(t *testing.T) {
	for code, want := range map[int]bool{option.Failed: true, option.BadUsage: true, option.Missed: true, option.Good: false, 143: false, -1: false} {
		require.Equal(t, want, known(code), code)
	}
}

// No failed run is silent: where no rank has said why, the parent does.
func TestNoSilentFailure(t *testing.T) {
	for _, tc := range []struct {
		err    error
		heard  bool
		status int
		said   string
	}{
		{nil, false, 0, ""},
		{&boot.ExitError{Rank: 3, Code: 1}, true, 1, ""},
		{&boot.ExitError{Rank: 3, Code: 1}, false, 1, "bench: rank 3 exited with code 1, and no rank reported why: this is a bug in bench\n"},
		{&boot.ExitError{Rank: 3, Code: 9}, true, 1, "bench: rank 3 exited with code 9\n"},
		{&launch.Exit{Launcher: "srun", Code: 1, Said: true}, true, 1, ""},
		{&launch.Exit{Launcher: "srun", Code: 1}, false, 1, "bench: srun, which started the ranks, ended with exit code 1\n"},
		{errors.New("no fork"), false, 1, "bench: no fork\n"},
	} {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		stderr := os.Stderr
		os.Stderr = w
		status := ended(t.Context(), tc.err, tc.heard)
		os.Stderr = stderr
		require.NoError(t, w.Close())
		said, err := io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, tc.status, status)
		require.Equal(t, tc.said, string(said))
	}
}
