package status

import (
	"slices"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
)

// Wait is one edge of a circle of ranks that wait for each other.
type Wait struct {
	Status       // of the rank that waits
	On     int32 // the rank of the world it waits for
}

// Circle finds ranks of the world that wait for each other, each in a call that the next has not
// come to: the commonest hang where a job has several Comms. A rank waits for those of a
// collective's Comm that have not begun it, and for the other end of a point-to-point call, unless
// that is in the call that matches it. A circle of one is a rank that waits for itself, in one half
// of a message of which it can make the other half only later.
func Circle(all []Status) []Wait {
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
			case o.Rank == s.Rank && !s.ForItself():
			case Pair(&s, &o): // data are on their way, however slowly
			case inject.Wrong("status.circle"):
			case s.Call.Kind.Pairwise() && o.Rank == s.Peer, !s.Call.Kind.Pairwise() && o.Calls < s.Calls:
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
				if moves(path[i:], members) {
					return nil
				}
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

// moves reports whether all ranks of a circle are in calls that meet, as a ring of SendRecvs: then
// data are on their way.
func moves(circle []Wait, members map[uint64][]Status) bool {
	for _, w := range circle {
		meets := slices.ContainsFunc(members[w.Comm], func(o Status) bool { return o.World == w.On && Meets(&w.Status, &o) })
		if !meets {
			return false
		}
	}
	return true
}

// Pair reports whether a and b wait for each other in the two ends of a message.
func Pair(a, b *Status) bool {
	return Meets(a, b) && (b.Peer == a.Rank || a.Several || b.Several)
}

// Meets reports whether a waits for b, and b is in the call that gives a what it waits for, or
// takes it: as a Send and its Recv. Of several messages at once only the first is known: they may
// meet whatever b is in. Without [Pair], b may be in an earlier call of the kind, and wait for
// another rank.
func Meets(a, b *Status) bool {
	if a.Comm != b.Comm || a.Doing != Waits || b.Doing != Waits || !a.Call.Kind.Pairwise() || !b.Call.Kind.Pairwise() ||
		b.Rank != a.Peer {
		return false
	}
	return a.Several || b.Several || a.sendsTo(b.Rank) && b.takesFrom(a.Rank) || b.sendsTo(a.Rank) && a.takesFrom(b.Rank)
}

// ForItself reports whether what the rank waits for is the other half of a message to itself, or from itself.
func (s *Status) ForItself() bool {
	return s.Doing == Waits && s.Call.Kind.Pairwise() && s.Peer == s.Rank
}

func (s *Status) sendsTo(r int32) bool {
	return s.Call.Kind == call.Send && s.Call.Root == r || s.Call.Kind == call.SendRecv && s.To == r
}

func (s *Status) takesFrom(r int32) bool {
	return (s.Call.Kind == call.Recv || s.Call.Kind == call.SendRecv) && s.Call.Root == r
}
