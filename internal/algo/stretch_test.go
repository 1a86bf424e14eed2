package algo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStretches(t *testing.T) {
	turns := func(n, hosts int) (node []int32) {
		for r := range n {
			node = append(node, int32(r%hosts))
		}
		return node
	}
	for _, tc := range []struct {
		name string
		node []int32
		want []stretch // nil: a table
	}{
		{"turns", turns(160, 80), []stretch{{0, 0, 80, 1}, {80, 0, 80, 1}}},
		{"the last turn not full", turns(170, 80), []stretch{{0, 0, 80, 1}, {80, 0, 80, 1}, {160, 0, 10, 1}}},
		{"turns as long as pays", turns(160, 16), []stretch{{0, 0, 16, 1}, {16, 0, 16, 1}, {32, 0, 16, 1}, {48, 0, 16, 1}, {64, 0, 16, 1},
			{80, 0, 16, 1}, {96, 0, 16, 1}, {112, 0, 16, 1}, {128, 0, 16, 1}, {144, 0, 16, 1}}},
		{"shorter turns", turns(160, 15), nil},
		{"others on each", slices.Concat([]int32{0, 0, 0, 1, 1, 1, 2, 0, 1, 2}, turns(90, 90)),
			[]stretch{{0, 0, 2, 3}, {6, 2, 1, 1}, {7, 0, 3, 1}, {10, 0, 90, 1}}},
		{"too many to look through", turns(16*mostStretches+16, 16), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := stretchesOf(tc.node)
			require.Equal(t, tc.want, got)
			if got == nil {
				return
			}
			locals := map[int]int{}
			for r, h := range tc.node {
				node := nodeIn(got, r)
				local := localIn(got, r, node)
				require.Equal(t, []int{int(h), locals[node], r}, []int{node, local, rankIn(got, node, local)}, "rank %d", r)
				locals[node]++
			}
		})
	}
}
