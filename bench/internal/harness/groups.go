package harness

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/ccl"
)

// groups are those of -split, as all ranks know them: by rank. Without -split all ranks are one.
//
// Groups of unequal size measure the same lines: those of rank 0's group, which the table shows. A call of
// another group has the same size in bytes, as near as its ranks divide it. Whatever decides how many calls a
// rank makes depends on rank 0's group, or on all groups, and never on the rank's own.
type groups struct {
	color, node []int
	size        map[int]int // by color
}

// meet tells all ranks who is in which group.
func (s *session) meet(ctx context.Context) error {
	flat := make([]int64, 2*s.world.Size())
	if err := ccl.AllGather(ctx, s.world, flat, []int64{int64(s.group), int64(s.world.Place().Node)}); err != nil {
		return err
	}
	s.groups = newGroups(flat)
	if s.o.Matrix == nil {
		return nil
	}
	for rank := range s.groups.color {
		if err := s.o.Matrix.Fits(s.groups.of(rank)); err != nil {
			return fmt.Errorf("%w in the group of rank %d", err, rank) // known before a rank starts, but for -split node
		}
	}
	return nil
}

// newGroups has the color and the node of each rank, one after the other.
func newGroups(flat []int64) groups {
	g := groups{size: map[int]int{}}
	for i := 0; i < len(flat); i += 2 {
		g.color, g.node = append(g.color, int(flat[i])), append(g.node, int(flat[i+1]))
		g.size[int(flat[i])]++
	}
	return g
}

// of is the size of a rank's group.
func (g groups) of(rank int) int { return g.size[g.color[rank]] }

// shown is the size of rank 0's group.
func (g groups) shown() int { return g.of(0) }

// alike reports whether a rank's calls are those of rank 0: its group has as many ranks.
func (g groups) alike(rank int) bool { return g.of(rank) == g.shown() }

// together reports whether a rank is in rank 0's group.
func (g groups) together(rank int) bool { return g.color[rank] == g.color[0] }

// hosts is on how many hosts rank 0's group is.
func (g groups) hosts() int {
	nodes := map[int]bool{}
	for rank, node := range g.node {
		if g.together(rank) {
			nodes[node] = true
		}
	}
	return len(nodes)
}

// sizes are those of all groups, in the order of their lowest ranks.
func (g groups) sizes() (sizes []int) {
	seen := map[int]bool{}
	for rank, color := range g.color {
		if !seen[color] {
			seen[color] = true
			sizes = append(sizes, g.of(rank))
		}
	}
	return sizes
}

// extent is the size of a line's calls.
type extent struct {
	count, bytes int // in this rank's group
	shown        int // the count in rank 0's
	room         int // bytes of the group with the most
}

// extentOf is what size bytes come to.
func extentOf[T ccl.Number](s *session, c *coll.Collective[T], size int) (e extent) {
	elem := ccl.TypeOf[T]().Size()
	e.count, e.bytes = c.Elements(size, elem, s.ranks())
	for _, n := range s.groups.size {
		_, bytes := c.Elements(size, elem, n)
		e.room = max(e.room, bytes)
	}
	e.shown, _ = c.Elements(size, elem, s.groups.shown())
	return e
}

// ranks is the size of this rank's group.
func (s *session) ranks() int { return s.lanes[0].c.Size() }
