package call

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestPieces(t *testing.T) {
	for _, tc := range []struct{ n, length, want int }{
		{0, 0, 1}, {0, 64, 1}, {64, 64, 1}, {65, 64, 2}, {128, 64, 2}, {129, 64, 3},
	} {
		assert.Equal(t, tc.want, Pieces(tc.n, tc.length), "%d by %d", tc.n, tc.length)
	}
}

func TestOffsetsOf(t *testing.T) {
	assert.Equal(t, []int{0, 4, 4, 14}, OffsetsOf([]int{1, 2, 3}, []int{2, 0, 5}, 2))
}
