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

// Two ranks disagree about collective 7, and fail the Comm before this one has made it. Whom it names depends on
// what it makes then, or is about to.
func TestSide(t *testing.T) {
	odd, most := Record{Seq: 7, Hash: 5, Kind: Broadcast}, Record{Seq: 7, Hash: 9, Kind: AllReduce}
	for _, tc := range []struct {
		name string
		seq  uint64
		hash uint32
		want int // the rank named
	}{
		{"neither's", 7, 3, 1},
		{"that of the other", 7, 9, 1},
		{"that of the one named", 7, 5, 2},
		{"another collective", 6, 5, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &Fault{Code: Mismatch, Peer: 1, Theirs: &odd, otherPeer: 2, other: &most}
			var c Comm
			g := c.side(f, tc.seq, tc.hash)
			assert.Equal(t, tc.want, g.Peer)
			assert.Equal(t, 1, f.Peer)
			if tc.want == 2 {
				assert.Equal(t, &most, g.Theirs)
				assert.Same(t, g, c.sided.Load())
			}
		})
	}
}
