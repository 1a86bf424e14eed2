package machine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOptions(t *testing.T) {
	o, err := parseOptions("preallocate=false,memory_fraction=0.3 --xla_gpu_autotune_level=0,name=a")
	require.NoError(t, err)
	require.Equal(t, map[string]any{"preallocate": false, "memory_fraction": 0.3, "xla_gpu_autotune_level": 0, "name": "a"}, o)
	for _, bad := range []string{"a", "=1"} {
		_, err = parseOptions(bad)
		require.ErrorContains(t, err, "give name=value,name=value")
	}
}
