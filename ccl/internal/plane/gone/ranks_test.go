package gone

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// Three hosts of three ranks: which ranks lead them, after what is known of ranks.
func TestLeadOfAHost(t *testing.T) {
	for _, tc := range []struct {
		name string
		what func(s *Ranks)
		want []int
	}{
		{"all are there", func(*Ranks) {}, []int{0, 3, 6}},
		{"a first one is reported lost", func(s *Ranks) { s.Report(3) }, []int{0, 4, 6}},
		{"another is", func(s *Ranks) { s.Report(4) }, []int{0, 3, 6}},
		{"and then the first", func(s *Ranks) { s.Report(4); s.Report(3) }, []int{0, 5, 6}},
		{"a first one has left", func(s *Ranks) { s.Leave(2, []int{6}) }, []int{0, 3, 7}},
		{"with another of its process", func(s *Ranks) { s.Leave(0, []int{0, 1}) }, []int{2, 3, 6}},
		{"one has left, the next is reported", func(s *Ranks) { s.Leave(0, []int{0}); s.Report(1) }, []int{2, 3, 6}},
		{"nobody is left", func(s *Ranks) { s.Report(3); s.Leave(1, []int{4, 5}) }, []int{0, -1, 6}},
		{"this process leaves the job", func(s *Ranks) { s.Leaves = true; s.Report(3) }, []int{0, 3, 6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := Ranks{Topo: algo.Blocks(3, 3)}
			tc.what(&s)
			for h, want := range tc.want {
				assert.Equal(t, want, s.Lead(h), "host %d", h)
			}
		})
	}
}

// The lowest rank that is left reports where all stood.
func TestLowestLeft(t *testing.T) {
	for _, tc := range []struct {
		name       string
		what       func(s *Ranks)
		rank, host int
	}{
		{"all are there", func(*Ranks) {}, 0, 0},
		{"some are lost", func(s *Ranks) { s.Lose(0, true); s.Lose(1, false) }, 2, 0},
		{"one has left, the next are lost", func(s *Ranks) { s.Leave(0, []int{0}); s.Occupy(0); s.Lose(1, true); s.Lose(2, true) }, 3, 1},
		{"a lead has left, and nobody took its place", func(s *Ranks) { s.Leave(0, []int{0}) }, 3, 1},
		{"all have gone", func(s *Ranks) {
			for h := range 3 {
				s.Leave(h, s.Staying(h))
			}
		}, 8, 2},
	} {
		s := Ranks{Topo: algo.Blocks(3, 3)}
		tc.what(&s)
		assert.Equal(t, []int{tc.rank, tc.host}, []int{s.LowestLeft(), s.ReportingHost()}, tc.name)
		assert.Equal(t, []bool{tc.host != 0, tc.host != 2}, []bool{s.ReportsApart(1), s.ReportsApart(7)}, tc.name)
	}
}

// A loss is certain or suspected by the first word of it: one that was suspected may have gone on elsewhere before it ended.
func TestFirstWordOfALossStands(t *testing.T) {
	s := Ranks{Topo: algo.Blocks(3, 3)}
	assert.True(t, s.AllCertain())
	s.Lose(1, true)
	assert.True(t, s.AllCertain())
	s.Lose(2, false)
	s.Lose(1, false)
	s.Lose(2, true)
	assert.Equal(t, []Rank{{}, {Lost: true, Certain: true}, {Lost: true}}, []Rank{s.Of(0), s.Of(1), s.Of(2)})
	assert.Equal(t, 2, s.Losses())
	assert.False(t, s.AllCertain())
}

// If the lead of a host has left, and no other has come, all of its ranks count as having left, except those
// that are lost.
func TestWhoHasLeft(t *testing.T) {
	s := Ranks{Topo: algo.Blocks(2, 3)}
	left := func() (ranks []int) {
		for w := range 6 {
			if s.HasLeft(w) {
				ranks = append(ranks, w)
			}
		}
		return ranks
	}
	assert.Empty(t, left())
	assert.False(t, s.Leave(1, []int{4}))
	assert.Equal(t, []int{4}, left())
	assert.True(t, s.Leave(1, []int{3}))
	assert.Equal(t, []int{3, 4, 5}, left())
	s.Occupy(1) // rank 5 has said that it leads now
	assert.Equal(t, []int{3, 4}, left())
	s.Lose(0, true)
	assert.True(t, s.Report(0))
	assert.Equal(t, []int{3, 4}, left())
}

// One host is not on the control plane: it has no other lead, whoever goes.
func TestOneHostHasOneLead(t *testing.T) {
	s := Ranks{Topo: algo.Blocks(1, 3)}
	assert.False(t, s.Report(0))
	assert.Equal(t, 0, s.Lead(0))
	assert.False(t, s.LeadHasGone())
}
