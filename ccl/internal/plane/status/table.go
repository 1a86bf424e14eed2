package status

import (
	"cmp"
	"slices"
	"sync"
)

// Table is what a process knows of where all ranks of a job stand. What the rank of a Comm has said
// last takes the place of what it said before.
type Table struct {
	mu     sync.Mutex // guards what follows; nothing is taken under it
	ranks  map[seat]*Status
	briefs map[uint64]*briefs // by Comm
}

// seat is a rank of a Comm.
type seat struct {
	comm uint64
	rank int32
}

// briefs are the last statuses of a Comm that were sent for their order alone.
type briefs struct {
	n    int
	last [keptBriefs]Status
}

const keptBriefs = 8

func (b *briefs) add(s *Status) {
	b.last[b.n%keptBriefs] = *s
	b.n++
}

// find returns one for which is holds, if there is any.
func (b *briefs) find(is func(*Status) bool) (Status, bool) {
	if b != nil {
		for i := range min(b.n, keptBriefs) {
			if is(&b.last[i]) {
				return b.last[i], true
			}
		}
	}
	return Status{}, false
}

// Keep takes in a status that was received at that coarse time.
func (t *Table) Keep(s *Status, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.Brief {
		if t.briefs == nil {
			t.briefs = map[uint64]*briefs{}
		}
		if t.briefs[s.Comm] == nil {
			t.briefs[s.Comm] = new(briefs)
		}
		t.briefs[s.Comm].add(s)
		return
	}
	if t.ranks == nil {
		t.ranks = map[seat]*Status{}
	}
	known := t.ranks[seat{s.Comm, s.Rank}]
	switch {
	case known != nil && s.Number < known.Number: // it came by a longer way
		return
	case known == nil:
		known = new(Status)
		t.ranks[seat{s.Comm, s.Rank}] = known
	}
	*known = *s
	known.heard = at
}

// HasBrief reports whether a rank has said of its order of calls what s says.
func (t *Table) HasBrief(s *Status) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.briefs[s.Comm].find(func(o *Status) bool { return o.Calls == s.Calls && o.Hash == s.Hash })
	return ok
}

// Contradiction finds what another rank has said of the order of a Comm's calls that contradicts s.
func (t *Table) Contradiction(s *Status) (Status, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.briefs[s.Comm].find(func(o *Status) bool {
		return o.Calls == s.Calls && o.Hash != s.Hash &&
			o.Rank != s.Rank
	})
}

// Forget drops what is known of a Comm.
func (t *Table) Forget(comm uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.briefs, comm)
	for k := range t.ranks {
		if k.comm == comm {
			delete(t.ranks, k)
		}
	}
}

// At is what is known of one rank of a Comm.
func (t *Table) At(comm uint64, rank int32) (Status, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.ranks[seat{comm, rank}]
	if s == nil {
		return Status{}, false
	}
	return *s, true
}

// Each calls f for what is known of each rank of a Comm, in no order; comm 0 stands for all Comms. f only looks.
func (t *Table) Each(comm uint64, f func(*Status)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k, s := range t.ranks {
		if comm == 0 || k.comm == comm {
			f(s)
		}
	}
}

// Of lists what is known of all ranks of a Comm, by rank; comm 0 stands for all Comms.
func (t *Table) Of(comm uint64) (all []Status) {
	t.Each(comm, func(s *Status) { all = append(all, *s) })
	slices.SortFunc(all, func(a, b Status) int { return cmp.Or(cmp.Compare(a.Comm, b.Comm), cmp.Compare(a.Rank, b.Rank)) })
	return all
}

// MayCircle reports whether ranks may wait for each other in a circle. Within one Comm a collective
// waits for those behind it alone: no circle.
func (t *Table) MayCircle() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	var one uint64
	for _, s := range t.ranks {
		if s.Doing == Waits && !s.Failed {
			if s.Call.Kind.Pairwise() || one != 0 && one != s.Comm {
				return true
			}
			one = s.Comm
		}
	}
	return false
}
