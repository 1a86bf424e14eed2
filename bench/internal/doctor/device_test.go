package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTopologyOfNone(t *testing.T) {
	require.Empty(t, topology(map[string]int{"AMD": 4}))
}

// With devices there is an answer, be it why there is none.
func TestTopologyOfSome(t *testing.T) {
	require.NotEmpty(t, topology(map[string]int{"NVIDIA": 1}))
}

func TestAtoi(t *testing.T) {
	for s, want := range map[string]int{"7": 7, "0": 0, "-1": -1, "": -1, "x": -1, "max": -1} {
		require.Equal(t, want, atoi(s), s)
	}
}
