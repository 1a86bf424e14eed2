package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMembers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		world  []int
		list   bool  // a list is needed
		others []int // no members
	}{
		{"none", nil, false, []int{1, 2}},
		{"one", []int{5}, false, []int{0, 4, 6}},
		{"row", []int{4, 5, 6, 7}, false, []int{0, 3, 8}},
		{"column", []int{1, 5, 9}, false, []int{0, 2, 4, 13, -3}},
		{"backwards", []int{7, 5, 3}, false, []int{9, 6, 4, 1}},
		{"rows", []int{2, 3, 7, 8, 12, 13}, false, []int{0, 1, 4, 6, 9, 17, 18, -3}},
		{"rows, the last not full", []int{2, 3, 7, 8, 12}, false, []int{0, 1, 4, 6, 9, 13, 17}},
		{"rows between each other", []int{0, 4, 8, 1, 5, 9}, false, []int{2, 3, 6, 7, 10, 12, -4}},
		{"more rows than columns", []int{0, 4, 1, 5, 2, 6}, false, []int{3, 7, 8, -1}},
		{"rows backwards", []int{8, 9, 4, 5, 0, 1}, false, []int{2, 3, 6, 7, 12, -4}},
		{"irregular", []int{2, 3, 7, 9}, true, []int{0, 1, 4, 5, 6, 8}},
		{"shuffled", []int{2, 0, 1, 3}, true, []int{4, -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			m := MembersOf(tc.world)
			assert.Equal(t, tc.list, m.list != nil)
			for r, w := range tc.world {
				assert.Equal(t, w, m.World(r))
				assert.Equal(t, r, m.Rank(w, len(tc.world)))
			}
			for _, w := range tc.others {
				assert.Equal(t, -1, m.Rank(w, len(tc.world)), "%d", w)
			}
		})
	}
}
