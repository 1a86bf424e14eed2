package plane

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// Three hosts of three ranks: who leads them, after what is known of ranks.
func TestLeadOfAHost(t *testing.T) {
	all := func(j *Job) {}
	for _, tc := range []struct {
		name string
		what func(j *Job)
		want []int
	}{
		{"all are there", all, []int{0, 3, 6}},
		{"a first one is said to be lost", func(j *Job) { j.markFailed(3) }, []int{0, 4, 6}},
		{"another is", func(j *Job) { j.markFailed(4) }, []int{0, 3, 6}},
		{"and then the first", func(j *Job) { j.markFailed(4); j.markFailed(3) }, []int{0, 5, 6}},
		{"a first one has left", func(j *Job) { j.markLeft(2, []int{6}) }, []int{0, 3, 7}},
		{"with another of its process", func(j *Job) { j.markLeft(0, []int{0, 1}) }, []int{2, 3, 6}},
		{"one has left, the next is lost", func(j *Job) { j.markLeft(0, []int{0}); j.markFailed(1) }, []int{2, 3, 6}},
		{"nobody is left", func(j *Job) { j.markFailed(3); j.markLeft(1, []int{4, 5}) }, []int{0, -1, 6}},
		{"a rank that cannot be", func(j *Job) { j.markFailed(-1); j.markFailed(9) }, []int{0, 3, 6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := &Job{World: newMembership()}
			j.World.Topo = algo.Blocks(3, 3)
			tc.what(j)
			for h, want := range tc.want {
				assert.Equal(t, want, j.leadOf(h), "host %d", h)
			}
		})
	}
}

// The lowest rank that is left reports where all stood.
func TestLowestLeft(t *testing.T) {
	for _, tc := range []struct {
		name       string
		what       func(m *membership)
		rank, host int
	}{
		{"all are there", func(*membership) {}, 0, 0},
		{"some are lost", func(m *membership) { m.lose(0, true); m.lose(1, false) }, 2, 0},
		{"one has left, the next are lost", func(m *membership) { m.leave([]int{0}); m.lose(1, true); m.lose(2, true) }, 3, 1},
		{"a lead has left, and nobody took its place", func(m *membership) { m.leave([]int{0}); m.advance(0, leftHost) }, 3, 1},
		{"all have gone", func(m *membership) { m.leave([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}) }, 8, 2},
	} {
		m := newMembership()
		m.Topo = algo.Blocks(3, 3)
		tc.what(&m)
		assert.Equal(t, []int{tc.rank, tc.host}, []int{m.lowestLeft(), m.reportingHost()}, tc.name)
		assert.Equal(t, []bool{tc.host != 0, tc.host != 2}, []bool{m.reportsApart(1), m.reportsApart(7)}, tc.name)
	}
}

// A loss is certain or suspected by the first word of it: one that was suspected may have gone on elsewhere before it ended.
func TestFirstWordOfALossStands(t *testing.T) {
	m := newMembership()
	m.lose(1, true)
	m.lose(2, false)
	m.lose(1, false)
	m.lose(2, true)
	assert.Equal(t, map[int]bool{1: true, 2: true}, m.dead)
	assert.Equal(t, map[int]bool{1: true}, m.ended)
}

// Where the lead of a host has left, and no other has come, all of its host count as having left, but for those
// that are lost.
func TestWhoHasLeft(t *testing.T) {
	j := &Job{World: newMembership()}
	j.World.Topo = algo.Blocks(2, 3)
	left := func() (ranks []int) {
		for w := range 6 {
			if j.World.hasLeft(w) {
				ranks = append(ranks, w)
			}
		}
		return ranks
	}
	assert.Empty(t, left())
	j.markLeft(1, []int{4})
	assert.Equal(t, []int{4}, left())
	j.markLeft(1, []int{3})
	assert.Equal(t, []int{3, 4, 5}, left())
	delete(j.World.vacant, 1) // rank 5 has said that it leads now
	assert.Equal(t, []int{3, 4}, left())
	j.World.dead[0] = true
	j.markFailed(0)
	assert.Equal(t, []int{3, 4}, left())
}
