package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

func TestOfRank(t *testing.T) {
	for name, want := range map[string]bool{
		"GOCCL_RANK": true, "OMPI_COMM_WORLD_RANK": true, "CUDA_VISIBLE_DEVICES": true, "GOCCL_BENCH_PARENT": true,
		"GOCCL_ALGO": false, "NCCL_ALGO": false, "RANKS": false,
	} {
		require.Equal(t, want, ofRank(name), name)
	}
}

func TestHurts(t *testing.T) {
	some, any := engine.Harm{Values: []string{"1"}}, engine.Harm{}
	require.True(t, hurts(&some, "1"))
	require.False(t, hurts(&some, "0"))
	require.False(t, hurts(&some, ""))
	require.True(t, hurts(&any, "x"))
	require.False(t, hurts(&any, ""))
	for _, h := range harms() {
		require.NotEmpty(t, h.Why, h.Name)
		require.NotEmpty(t, h.Remedy, h.Name)
	}
}
