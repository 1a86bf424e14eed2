package algo

import (
	"slices"
	"sort"
)

// A stretch is ranks that follow each other on hosts that follow each other, equally many on each.
// Ranks in turns are one stretch for each turn, and so are, in parts, those of a Comm of some of
// their rows. A host has one place in a stretch at most.
type stretch struct {
	rank, node int32 // the first, and where it is
	hosts      int32
	each       int32 // ranks on each of them
}

// Limits of what is kept as stretches: more of them would be slower to look through than a table, and
// shorter ones larger.
const (
	mostStretches = 128
	ranksAStretch = 16 // on average, at least: so they take a byte a rank at most
)

// stretchesOf is the ranks on those hosts, nil if a table is better.
func stretchesOf(node []int32) []stretch {
	most := min(mostStretches, len(node)/ranksAStretch)
	var all []stretch
	for r := 0; r < len(node); {
		end := r + 1
		for end < len(node) && node[end] == node[r] {
			end++
		}
		each := int32(end - r)
		if i := len(all) - 1; i >= 0 && all[i].each == each && all[i].node+all[i].hosts == node[r] {
			all[i].hosts++
		} else if len(all) == most {
			return nil
		} else {
			all = append(all, stretch{int32(r), node[r], 1, each})
		}
		r = end
	}
	return slices.Clone(all) // without room to grow
}

// has reports whether ranks of host node are in s.
func (s *stretch) has(node int) bool { return uint(node-int(s.node)) < uint(s.hosts) }

// of is the stretch that rank is in.
func of(all []stretch, rank int) int {
	return sort.Search(len(all), func(i int) bool { return int(all[i].rank) > rank }) - 1
}

// nodeIn is the host of rank.
func nodeIn(all []stretch, rank int) int {
	s := &all[of(all, rank)]
	return int(s.node) + (rank-int(s.rank))/int(s.each)
}

// localIn is the index of rank among those of its host, which is node.
func localIn(all []stretch, rank, node int) int {
	i := of(all, rank)
	local := (rank - int(all[i].rank)) % int(all[i].each)
	for i := range all[:i] {
		if s := &all[i]; s.has(node) {
			local += int(s.each)
		}
	}
	return local
}

// rankIn is the inverse of nodeIn and localIn.
func rankIn(all []stretch, node, local int) int {
	for i := range all {
		s := &all[i]
		if !s.has(node) {
			continue
		}
		if local < int(s.each) {
			return int(s.rank) + (node-int(s.node))*int(s.each) + local
		}
		local -= int(s.each)
	}
	panic("algo: no such rank on that host")
}
