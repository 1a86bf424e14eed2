package plane

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// planeOf is the sites of n hosts of one rank, of which some are gone, as all know.
func planeOf(n int, gone ...int) []*Site {
	j := &Job{World: newMembership()}
	j.World.Topo = algo.Blocks(n, 1)
	for _, h := range gone {
		j.World.first[h] = 1
	}
	var sites []*Site
	for h := range n {
		sites = append(sites, newSite(j, h))
	}
	return sites
}

// Whoever is gone, the others stay one, have few connections, and each knows of its own what the other end
// knows of it.
func TestPlaneStaysOne(t *testing.T) {
	for n := 2; n <= 40; n++ {
		for first := range n {
			for _, gone := range [][]int{nil, {first}, {first, (first + 1) % n}, {first, (first + 1) % n, (first + 2) % n, (first + n/2) % n}} {
				sites := planeOf(n, gone...)
				there := func(h int) bool { return !slices.Contains(gone, h) }
				reached := map[int]bool{}
				var visit func(h int)
				visit = func(h int) {
					if reached[h] {
						return
					}
					reached[h] = true
					beside := sites[h].Here.beside()
					assert.LessOrEqual(t, len(beside), 7)
					for _, o := range beside {
						assert.True(t, there(o) && o != h)
						assert.Contains(t, sites[o].Here.beside(), h)
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
				assert.Len(t, reached, left, "%d hosts without %v", n, gone)
			}
		}
	}
}

// One who is stopped while others are gone decides in their place only if it is the lowest that is left.
func TestLowestHostDecides(t *testing.T) {
	for _, tc := range []struct {
		gone []int
		want int
	}{{nil, 0}, {[]int{0}, 1}, {[]int{0, 1, 2}, 3}, {[]int{1, 3}, 0}} {
		for h, s := range planeOf(5, tc.gone...) {
			if !slices.Contains(tc.gone, h) {
				assert.Equal(t, h == tc.want, s.Here.lowest(), "%d without %v", h, tc.gone)
			}
		}
	}
}
