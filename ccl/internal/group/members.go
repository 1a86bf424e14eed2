package group

import (
	"slices"

	"github.com/goccl/goccl/ccl/internal/inject"
)

// Members maps the ranks of a Comm to ranks of the world. What mesh-shaped jobs split into are rows
// of equally many, with one stride from rank to rank and one from row to row: a mesh of up to four
// dimensions has no others. Other Comms have a list.
type Members struct {
	start, Stride int
	each, row     int // ranks of a row, and the stride from row to row; both are 0 where there is one row
	list          []int32
}

// MembersOf are those ranks of the world.
func MembersOf(world []int) Members {
	if len(world) == 0 {
		return Members{}
	}
	m := Members{start: world[0], Stride: 1}
	if len(world) > 1 {
		m.Stride = world[1] - world[0]
	}
	i := m.odd(world)
	if i < len(world) {
		m.each, m.row = i, world[i]-world[0]
		i = m.odd(world)
	}
	if i < len(world) {
		m = Members{list: make([]int32, len(world))}
		for i, w := range world {
			m.list[i] = int32(w)
		}
	}
	return m
}

// odd is the first rank of the Comm that m has elsewhere than world, len(world) if there is none.
func (m *Members) odd(world []int) int {
	for i, w := range world {
		if w != m.World(i) {
			return i
		}
	}
	return len(world)
}

// World is the rank in the world of a rank of the Comm.
func (m *Members) World(rank int) int {
	switch {
	case m.list != nil:
		return int(m.list[rank])
	case m.each > 0:
		return m.start + rank/m.each*m.row + rank%m.each*m.Stride
	}
	return m.start + rank*m.Stride
}

// Rank is the inverse of World; -1 if w is no member. size is that of the Comm.
func (m *Members) Rank(w, size int) int {
	if m.list != nil {
		return slices.Index(m.list, int32(w))
	}
	each, rows := size, 1
	if m.each > 0 {
		each, rows = m.each, (size+m.each-1)/m.each
	}
	// Rows may lie one behind the other or between each other: whichever are fewer, rows or columns, are tried.
	if rows <= each {
		for i := range rows {
			if k, is := steps(w-m.start-i*m.row, m.Stride, each); is && (i*each+k < size || inject.Wrong("group.members")) {
				return i*each + k
			}
		}
		return -1
	}
	for k := range each {
		if i, is := steps(w-m.start-k*m.Stride, m.row, rows); is && (i*each+k < size || inject.Wrong("group.members")) {
			return i*each + k
		}
	}
	return -1
}

// steps is how many steps, fewer than most, lead from 0 to d.
func steps(d, step, most int) (n int, is bool) {
	if step == 0 {
		return 0, d == 0
	}
	n = d / step
	return n, d%step == 0 && n >= 0 && n < most
}
