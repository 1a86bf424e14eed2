package plane

import (
	"slices"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Wait is one edge of a circle of ranks that wait for each other.
type Wait struct {
	Status       // of the rank that waits
	On     int32 // the rank of the world it waits for
}

// circle finds ranks of the world that wait for each other, each in a call that the next has not
// come to: the commonest hang where a job has several Comms. A rank waits for those of a collective's Comm that
// have not begun it, and for the other end of a point-to-point call.
func circle(all []Status) []Wait {
	members := map[uint64][]Status{}
	for _, s := range all {
		members[s.Comm] = append(members[s.Comm], s)
	}
	edges := map[int32][]Wait{}
	for _, s := range all {
		if s.Doing != Waits || s.Failed {
			continue
		}
		for _, o := range members[s.Comm] {
			switch {
			case o.Rank == s.Rank:
			case call.IsPairwise(s.Call.Kind) && o.Rank == s.Peer, !call.IsPairwise(s.Call.Kind) && o.Calls < s.Calls:
				edges[s.World] = append(edges[s.World], Wait{s, o.World})
			}
		}
	}
	starts := make([]int32, 0, len(edges))
	for w := range edges {
		starts = append(starts, w)
	}
	slices.Sort(starts)
	done := map[int32]bool{}
	var path []Wait
	var visit func(w int32) []Wait
	visit = func(w int32) []Wait {
		for i, e := range path {
			if e.World == w {
				return slices.Clone(path[i:])
			}
		}
		if done[w] {
			return nil
		}
		for _, e := range edges[w] {
			path = append(path, e)
			if found := visit(e.On); found != nil {
				return found
			}
			path = path[:len(path)-1]
		}
		done[w] = true
		return nil
	}
	for _, w := range starts {
		if found := visit(w); found != nil {
			return found
		}
	}
	return nil
}

// findCircle names a deadlock, once, if this process is the one to do so. One that is found must be found again a
// quarter of a second later: what was told of the ranks may have been of different times.
func (j *job) findCircle() {
	j.mu.Lock()
	// Within one Comm a collective waits for those behind it alone: no circle.
	var one uint64
	may := false
	for _, s := range j.picture.ranks {
		if s.Doing == Waits && !s.Failed {
			may = may || call.IsPairwise(s.Call.Kind) || one != 0 && one != s.Comm
			one = s.Comm
		}
	}
	var m *Member
	if may {
		m = j.reporter()
	}
	j.mu.Unlock()
	if m == nil || m.Opt.OnCircle == nil {
		return
	}
	found := circle(j.standing(0))
	var key []int32
	for _, w := range found {
		key = append(key, w.World, int32(w.Comm), int32(w.Calls), int32(w.Call.Seq))
	}
	switch {
	case len(found) == 0:
		j.suspect = nil
	case slices.Equal(key, j.picture.named):
	case slices.Equal(key, j.suspect):
		j.picture.named = key
		m.Opt.OnCircle(found)
	default:
		j.suspect = key
	}
}
