package plane

import (
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// picture is what a process knows of where all ranks stand. The rank of a Comm that has told last
// is replaced by what it tells next.
type picture struct {
	ranks    map[seat]*Status
	briefs   map[uint64]*briefs // by Comm
	brokenAt int64              // when the first failure was heard of, since the last picture; 0: none
	named    []int32            // the deadlock that was named last
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

// publishBrief tells the other hosts of a call that waits, one rank for all of this host.
func (s *Site) publishBrief(st Status) {
	st.Brief = true
	s.mu.Lock()
	_, known := s.picture.briefs[st.Comm].find(func(o *Status) bool { return o.Calls == st.Calls && o.Hash == st.Hash })
	s.mu.Unlock()
	if !known {
		s.receiveStatus(&st, nil, true)
	}
}

// hear takes in what a rank tells, and passes it on: from is the neighbor it came from, nil for this
// host; aloud says that the other processes of this host have not heard it.
func (s *Site) receiveStatus(st *Status, from *controlConn, aloud bool) {
	if !s.isNews(st) {
		return
	}
	s.WakeMonitor()
	if aloud && s.Host.Shared() {
		boardOf(s.Host).status.Append(st, s.Topo.Local(s.Mine), nil)
		s.ringIdle()
	}
	if s.leads() {
		all := s.isBroken()
		for _, c := range s.neighbors() {
			if c != from && (all || c.inTree(s.Node)) {
				c.sendStatus(st)
			}
		}
	}
	at := s.Clock()
	s.mu.Lock()
	p := &s.picture
	if st.Brief {
		if p.briefs[st.Comm] == nil {
			p.briefs[st.Comm] = new(briefs)
		}
		p.briefs[st.Comm].add(st)
	} else {
		if known := p.ranks[seat{st.Comm, st.Rank}]; known != nil {
			*known = *st
			known.heard = at
		} else {
			keep := *st
			keep.heard = at
			p.ranks[seat{st.Comm, st.Rank}] = &keep
		}
	}
	var few [8]*Member
	mine := append(few[:0], s.comms[st.Comm]...)
	s.mu.Unlock()
	for _, c := range mine {
		c.checkAgainst(st)
		if !st.Brief && st.Doing == Waits && int(st.Rank) != c.rank {
			c.asked.Store(true)
		}
	}
}

// isBroken reports whether a lead has gone: then the tree does not reach all.
func (s *Site) isBroken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.first) > 0
}

// isNews reports whether this site hears st for the first time.
func (s *Site) isNews(st *Status) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st.Brief {
		key := order{st.Calls, st.Hash}
		last := s.heardBrief[st.Comm]
		if slices.Contains(last[:], key) {
			return false
		}
		copy(last[1:], last[:])
		last[0] = key
		s.heardBrief[st.Comm] = last
		return true
	}
	key := seat{st.Comm, st.Rank}
	if last, ok := s.heard[key]; ok && int32(st.Number-last) <= 0 {
		return false
	}
	s.heard[key] = st.Number
	return true
}

// order is a place in the order of a Comm's collectives: how many, and which.
type order struct {
	calls uint64
	hash  uint32
}

// readBoard takes in what other processes of this host have told.
func (s *Site) readBoard() {
	s.mu.Lock()
	h := s.Host
	s.mu.Unlock()
	if h == nil || !h.Shared() || boardOf(h).status.Claimed() == s.boardRead {
		return
	}
	boardOf(h).status.Unread(&s.boardRead, s.writesNoMore, func(st *Status) { s.receiveStatus(st, nil, false) })
}

// brief finds what was told of the order of a Comm's calls that contradicts s.
func (j *job) brief(s *Status) (Status, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.picture.briefs[s.Comm].find(func(o *Status) bool { return o.Calls == s.Calls && o.Hash != s.Hash && o.Rank != s.Rank })
}

// forgetStatuses drops what is known of a Comm that no rank of this process is in any more. j.mu is held.
func (j *job) forgetStatuses(comm uint64) {
	delete(j.picture.briefs, comm)
	for k := range j.picture.ranks {
		if k.comm == comm {
			delete(j.picture.ranks, k)
		}
	}
}

// standing lists what is known of all ranks of a Comm, by rank; comm 0 stands for all Comms.
func (j *job) standing(comm uint64) []Status {
	j.mu.Lock()
	var all []Status
	for k, st := range j.picture.ranks {
		if comm == 0 || k.comm == comm {
			all = append(all, *st)
		}
	}
	j.mu.Unlock()
	slices.SortFunc(all, func(a, b Status) int {
		if a.Comm != b.Comm {
			return compareUint(a.Comm, b.Comm)
		}
		return int(a.Rank - b.Rank)
	})
	return all
}

func compareUint(a, b uint64) int {
	if a < b {
		return -1
	}
	return 1
}

// Late is a call that has waited for long, as the rank that reports it knows it.
type Late struct {
	Waits   Status
	Late    []Status // the ranks that have not come to it
	Unheard []int    // ranks that have not said where they stand
}

// reportStall reports the call that c waits in, if no lower rank does.
func (s *Site) reportStall(c *Member, mine Status) {
	if c.Opt.OnLate == nil {
		return
	}
	l := Late{Waits: mine}
	l.Waits.name.set(c.Name())
	if c.Opt.Caller != nil {
		l.Waits.caller.set(c.Opt.Caller())
	}
	heard := map[int32]bool{mine.Rank: true}
	for _, o := range s.standing(c.id) {
		heard[o.Rank] = true
		switch {
		case o.Rank == mine.Rank:
		case o.Doing == Waits && o.Calls == mine.Calls && o.Rank < mine.Rank && !call.IsPairwise(mine.Call.Kind):
			return // it reports
		case call.IsPairwise(mine.Call.Kind) && o.Rank == mine.Peer, !call.IsPairwise(mine.Call.Kind) && o.Calls < mine.Calls:
			l.Late = append(l.Late, o)
		}
	}
	for r := range int(mine.Size) {
		if !heard[int32(r)] {
			l.Unheard = append(l.Unheard, r)
		}
	}
	go c.Opt.OnLate(l)
}

// Names in the log for what a Comm is called if nobody has named it.

// Name is what the Comm is called in reports.
func (c *Member) Name() string {
	if n := c.name.Load(); n != nil {
		return *n
	}
	return "comm"
}

// SetName names the Comm.
func (c *Member) SetName(name string) { c.name.Store(&name) }

// reporter is the Comm of this process that speaks for the job, if its process is the one to
// do so: that of the lowest rank of the world that has not gone. j.mu is held.
func (j *job) reporter() *Member {
	lowest := -1
	var m *Member
	for _, list := range j.comms {
		for _, c := range list {
			w := c.Members.World(c.rank)
			if m == nil || w < lowest || w == lowest && c.id < m.id {
				lowest, m = w, c
			}
		}
	}
	if m == nil {
		return nil
	}
	for w := range lowest {
		if !j.isAway(w) && !j.hasLeft(w) {
			return nil
		}
	}
	return m
}

// pictureAfter is how long the ranks have to say where they stood when the first failure came.
const pictureAfter = 50 * time.Millisecond

// reportSnapshot prints the joint picture, if it is time and this process's part to.
func (j *job) reportSnapshot(now int64) {
	j.mu.Lock()
	p := &j.picture
	if p.brokenAt == 0 || now-p.brokenAt < int64(pictureAfter) {
		j.mu.Unlock()
		return
	}
	p.brokenAt = 0
	m := j.reporter()
	j.mu.Unlock()
	if m != nil && m.Opt.OnPicture != nil {
		all := j.standing(0)
		j.Wg.Go(func() { m.Opt.OnPicture(all) }) // which may take its time
	}
}

// Job names the job, for reports.
func (c *Member) Job() string { return c.Site.id }

// ID tells the Comms of a job apart.
func (c *identity) ID() uint64 { return c.id }

// World is the rank in the job's first Comm of rank r.
func (c *identity) World(r int) int { return c.Members.World(r) }
