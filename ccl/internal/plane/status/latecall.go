package status

// Late is a call that has waited for long, as the rank that reports it knows it.
type Late struct {
	Waits   Status
	Late    []Status // the ranks that have not come to it
	Unheard []int    // ranks that have not said where they stand
	Stuck   *Status  // the rank at the other end, where that is in the matching call; nil: it is not
	Done    int64    // bytes that have moved, of Of; 0 of 0: not known
	Of      int64
}

// LateIn is the call that mine waits in, by what all ranks of the Comm have said. It is false where
// a lower rank waits in the same call, or at the other end of the message: that reports it.
func LateIn(mine Status, all []Status) (Late, bool) {
	l := Late{Waits: mine}
	heard := map[int32]bool{mine.Rank: true}
	pairwise := mine.Call.Kind.Pairwise()
	for _, o := range all {
		heard[o.Rank] = true
		switch {
		case o.Rank == mine.Rank:
		case o.Doing == Waits && o.Calls == mine.Calls && o.Rank < mine.Rank && !pairwise:
			return Late{}, false
		case Pair(&mine, &o):
			if o.Rank < mine.Rank {
				return Late{}, false
			}
			l.Stuck = &o
		case pairwise && o.Rank == mine.Peer, !pairwise && o.Calls < mine.Calls:
			l.Late = append(l.Late, o)
		}
	}
	for r := range int(mine.Size) {
		if !heard[int32(r)] {
			l.Unheard = append(l.Unheard, r)
		}
	}
	return l, true
}
