package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
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
	some, any := harm{values: []string{"1"}}, harm{}
	require.True(t, some.hurts("1"))
	require.False(t, some.hurts("0"))
	require.False(t, some.hurts(""))
	require.True(t, any.hurts("x"))
	require.False(t, any.hurts(""))
	for _, h := range harms {
		require.NotEmpty(t, h.why, h.name)
		require.NotEmpty(t, h.remedy, h.name)
	}
}
