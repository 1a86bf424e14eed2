package gone

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// hostsWithout is n hosts, some of which have no lead, as all know.
func hostsWithout(n int, without ...int) *Ranks {
	s := &Ranks{Topo: algo.Blocks(n, 1)}
	for _, h := range without {
		s.SetLead(h, 1, Lost)
	}
	return s
}

// Whoever is gone, the others stay one, have few connections, and each knows of its own what the other end
// knows of it.
func TestPlaneStaysOne(t *testing.T) {
	for n := 2; n <= 40; n++ {
		for first := range n {
			for _, without := range [][]int{nil, {first}, {first, (first + 1) % n}, {first, (first + 1) % n, (first + 2) % n, (first + n/2) % n}} {
				s := hostsWithout(n, without...)
				there := func(h int) bool { return !slices.Contains(without, h) }
				reached := map[int]bool{}
				var visit func(h int)
				visit = func(h int) {
					if reached[h] {
						return
					}
					reached[h] = true
					beside := s.Neighbors(h)
					assert.LessOrEqual(t, len(beside), 7)
					for _, o := range beside {
						assert.True(t, there(o) && o != h)
						assert.Contains(t, s.Neighbors(o), h)
						visit(o)
					}
				}
				left := 0
				for h := range n {
					if there(h) {
						if left == 0 {
							visit(h)
						}
						left++
					}
				}
				assert.Len(t, reached, left, "%d hosts without %v", n, without)
			}
		}
	}
}

// One who is stopped while others are gone decides in their place only if it is the lowest that is left.
func TestLowestHostDecides(t *testing.T) {
	for _, tc := range []struct {
		without []int
		want    int
	}{{nil, 0}, {[]int{0}, 1}, {[]int{0, 1, 2}, 3}, {[]int{1, 3}, 0}} {
		s := hostsWithout(5, tc.without...)
		for h := range 5 {
			if !slices.Contains(tc.without, h) {
				assert.Equal(t, h == tc.want, s.isLowest(h), "%d without %v", h, tc.without)
			}
		}
	}
}

// A host is beside its places in the tree and two on either side of the ring, and the ring closes
// over those that have gone.
func TestNeighbors(t *testing.T) {
	for _, tc := range []struct {
		host    int
		without []int
		want    []int
	}{
		{0, nil, []int{1, 2, 19, 18}},
		{5, nil, []int{2, 11, 12, 6, 7, 4, 3}},
		{5, []int{6, 2}, []int{11, 12, 7, 8, 4, 3}},
	} {
		assert.Equal(t, tc.want, hostsWithout(20, tc.without...).Neighbors(tc.host))
	}
}
