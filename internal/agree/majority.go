package agree

// Majority reports whether the ranks that are left may go on in the place of all, so that no others
// can: last are the ranks of the last generation, left those that have agreed, ended those whose
// end is certain, in one numbering. Any order will do.
//
// A rank that is silent, or cannot be reached, may live on the other side of a partition. So more
// than half must be left of those that may live: ranks whose end is certain are counted out. Of
// exactly half, the side goes on with the lowest rank that may live.
//
// last is the last generation that stood: all of its ranks had come to it. What was agreed on
// since, and lost ranks before it stood, is none: a rank that it counts as a member may never have
// heard of it, and go on elsewhere.
//
// Two sides need not know of the same ends. Let n ranks be of the last generation, e and f those
// whose end the two sides are certain of, all of which have ended, so that the sides have at most n
// - max(e, f) ranks together. Two that go on would have at least (n-e)/2 + (n-f)/2, which is more,
// unless e = f are all that have ended. Then both sides have half, and the lowest rank that may
// live, the same for both, is on one of them.
func Majority(last, left, ended []int) bool {
	here, gone := setOf(left), setOf(ended)
	lowest, may, all := -1, 0, 0
	for r := range setOf(last) {
		if gone[r] && !here[r] {
			continue
		}
		all++
		if here[r] {
			may++
		}
		if lowest < 0 || r < lowest {
			lowest = r
		}
	}
	return 2*may > all || 2*may == all && here[lowest]
}

func setOf(ranks []int) map[int]bool {
	set := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		set[r] = true
	}
	return set
}
