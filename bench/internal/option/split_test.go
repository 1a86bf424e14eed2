package option

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSplit(t *testing.T) {
	for _, tc := range []struct {
		in     string
		colors []int // of ranks 0 to 5, two on each of three nodes
	}{
		{"node", []int{0, 0, 1, 1, 2, 2}},
		{"mod:2", []int{0, 1, 0, 1, 0, 1}},
		{"div:3", []int{0, 0, 0, 1, 1, 1}},
		{"mask:0x4", []int{0, 0, 0, 0, 4, 4}},
		{"MOD:6", []int{0, 1, 2, 3, 4, 5}},
	} {
		o := parsed(t, []string{"-split", tc.in})
		for rank, want := range tc.colors {
			require.Equal(t, want, o.Split.Color(rank, rank/2), tc.in)
		}
	}
	require.Equal(t, 0, Split{}.Color(3, 2), "no groups")
	require.Equal(t, "mod:2", Split{How: "mod", N: 2}.String())
	require.Equal(t, "node", Split{How: "node"}.String())
	for _, bad := range []string{"nod", "mod", "mod:0", "mod:x", "node:2", "div:-1", ""} {
		_, err := Parse([]string{"-split", bad})
		require.ErrorIs(t, err, errSplit, bad)
	}
}
