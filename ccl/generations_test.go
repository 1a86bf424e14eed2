package ccl

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A majority is one of the last generation that had one, of those that any rank knows; ends since then count. Ranks 0 and 1 are
// left of five.
func TestGenerations(t *testing.T) {
	for _, tc := range []struct {
		name     string
		accepted int      // as a rank knows
		ended    [2][]int // in each of two shrinks
		of       int
		ok       bool
	}{
		{"two of five", 0, [2][]int{}, 5, false},
		{"half of four, with the lowest", 1, [2][]int{}, 4, true},
		{"the first end is certain", 0, [2][]int{{4}, nil}, 5, true},
		{"the others are", 0, [2][]int{nil, {2, 3}}, 5, true},
		{"an end before a majority does not count again", 1, [2][]int{{4}, nil}, 4, true},
		{"no generation of which anybody knows", 7, [2][]int{}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var g generations
			g.begin([]int{0, 1, 2, 3, 4})
			g.add([]int{0, 1, 2, 3}, tc.ended[0])
			g.add([]int{0, 1}, tc.ended[1])
			of, ok := g.hasMajority(tc.accepted, []int{0, 1})
			require.Equal(t, tc.of, of)
			require.Equal(t, tc.ok, ok)
			g.accept()
			require.Equal(t, 2, g.accepted)
			require.Equal(t, map[int][]int{2: {0, 1}}, g.members)
		})
	}
}
