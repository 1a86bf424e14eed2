package harness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
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
		t.Setenv(ours, value)
		require.Equal(t, want, [3]bool{(&plan{}).parented(), spawned(), watched()}, value)
	}
}

func TestKnown(t *testing.T) {
	for code, want := range map[int]bool{option.Failed: true, option.BadUsage: true, option.Missed: true, option.Good: false, 143: false, -1: false} {
		require.Equal(t, want, known(code), code)
	}
}
