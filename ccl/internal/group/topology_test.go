package group

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// Regular layouts need no table.
func TestTopology(t *testing.T) {
	assert.Equal(t, algo.Flat(3), Topology([]int{0, 0, 0}, 1))
	assert.Equal(t, algo.Blocks(2, 2), Topology([]int{0, 0, 1, 1}, 2))
	assert.Equal(t, algo.Blocks(3, 1), Topology([]int{0, 1, 2}, 3))
	for _, nodeOf := range [][]int{{0, 1, 0, 1}, {0, 0, 1}, {0, 1, 1}} {
		got := Topology(nodeOf, 2)
		for r, node := range nodeOf {
			assert.Equal(t, node, got.Node(r), "rank %d of %v", r, nodeOf)
		}
		assert.Equal(t, len(nodeOf), got.Size())
		assert.Equal(t, 2, got.Nodes())
	}
}
