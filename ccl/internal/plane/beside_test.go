package plane

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// A host is beside its places in the tree and two on either side of the ring, and the ring closes
// over those that are gone.
func TestBeside(t *testing.T) {
	topo := algo.Blocks(20, 2)
	for _, tc := range []struct {
		node int
		gone map[int]bool
		want []int
	}{
		{0, nil, []int{1, 2, 19, 18}},
		{5, nil, []int{2, 11, 12, 6, 7, 4, 3}},
		{5, map[int]bool{6: true, 2: true}, []int{11, 12, 7, 8, 4, 3}},
	} {
		assert.Equal(t, tc.want, Beside(topo, tc.node, tc.gone))
	}
}
