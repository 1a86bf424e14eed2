package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDense(t *testing.T) {
	assert.Equal(t, []int{0, 1, 0, 2, 1}, dense([]int{7, 3, 7, 0, 3}))
	assert.Empty(t, dense(nil))
}

// Every Comm of a job has a number of its own, and none that of the world.
func TestChildID(t *testing.T) {
	seen := map[uint64]bool{worldID: true}
	parents := []uint64{worldID}
	for range 2 {
		var next []uint64
		for _, p := range parents {
			for split := range uint64(5) {
				for color := range 5 {
					id := childID(p, split+1, color)
					assert.False(t, seen[id])
					assert.Equal(t, id, childID(p, split+1, color))
					seen[id] = true
					next = append(next, id)
				}
			}
		}
		parents = next
	}
}
