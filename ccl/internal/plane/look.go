package plane

import (
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// The monitor looks after calls that wait, at no cost to those that do not: a call that has slept
// leaves a note of itself, and a foreign call the time at which it began. After lookAfter its place in the
// order of calls is compared with that of the other ranks, whatever they wait for; after
// tellAfter every rank of its Comm says where it stands, which the flight recorder, the search for deadlocks
// and the naming of late ranks go by.

const (
	compareAfter = 5 * time.Millisecond
	publishAfter = 500 * time.Millisecond
	follow       = 4 * time.Second       // for which changes are told after another rank was heard to wait
	publishEvery = 50 * time.Millisecond // at most
)

// note is what a Comm tells the monitor of the call under way, and what the monitor keeps of it.
type note struct {
	sync.Mutex
	asleep bool
	queued bool // it is made on the goroutine of a Stream
	call   call.Record
	calls  uint64
	peer   int32
	since  int64 // coarse, as all times here

	looked      uint64 // the calls whose order has been compared: 1 + their number
	brief       uint64 // and told
	published   status.Status
	publishedAt int64
	heardAt     int64 // when another rank was last heard to wait; 0: never
	warned      int64 // 1 + the beginning of the call that was warned of
	atEnd       *status.Status
}

// noteSleep notes that the call under way sleeps, waiting for peer.
func (c *Member) noteSleep(k *call.Call, peer int) {
	n := &c.note
	n.Lock()
	n.asleep, n.call, n.queued, n.calls, n.peer, n.since = true, k.Record, k.Queued, c.Calls, int32(peer), c.Began
	n.Unlock()
}

// EndSleep notes that the sleep of the call under way has ended.
func (c *Member) EndSleep() {
	c.Unpark()
	c.Local.Waits(c.Me).Store(0)
	n := &c.note
	n.Lock()
	n.asleep = false
	n.Unlock()
}

// NoteProgress notes that the sleeping call goes on: it has waited only since now.
func (c *Member) NoteProgress() {
	n := &c.note
	n.Lock()
	n.since = c.Site.Clock()
	n.Unlock()
}

// notePeer notes that the sleeping call waits for another rank.
func (c *Member) notePeer(peer int) {
	n := &c.note
	n.Lock()
	n.peer = int32(peer)
	n.Unlock()
}

// status is where this rank stands now. c.note is locked; it is false once the Comm's memory is gone.
func (c *Member) status(now int64) (s status.Status, since int64, ok bool) {
	n := &c.note
	s = status.Status{Comm: c.id, Rank: int32(c.rank), Size: int32(c.Size()), World: int32(c.Members.World(c.rank)),
		Node: int32(c.Site.Node), Peer: -1, For: -1, Failed: c.Cause.Load() != nil}
	c.Life.Lock()
	if c.Gone {
		c.Life.Unlock()
		return s, 0, false
	}
	calls, word := c.Local.Collective(c.Me)
	last, have := c.Local.Made(c.Me, calls)
	c.Life.Unlock()
	s.Calls, s.Hash = calls, uint32(word)
	if have {
		s.Call = last
	}
	began := c.foreignSince()
	switch {
	case began != 0:
		s.Doing, since = status.Waits, int64(began&^ForeignCall)
	case n.asleep && n.calls == s.Calls:
		s.Doing, s.Peer, since = status.Waits, n.peer, n.since
		if call.IsPairwise(n.call.Kind) {
			s.Call = n.call
		}
	case c.Opt.Busy != nil && c.Opt.Busy():
		s.Doing = status.AtWork
	}
	if s.Doing == status.Waits {
		s.Waited = uint32(max(now-since, 0) / int64(time.Millisecond))
	}
	return s, since, true
}

// check is the monitor's look at c.
func (c *Member) check(now int64) {
	n := &c.note
	n.Lock()
	defer n.Unlock()
	if c.Cause.Load() != nil {
		c.publishAtFailure(now)
		return
	}
	if !n.asleep && c.foreignSince() == 0 && n.heardAt == 0 {
		return
	}
	s, since, ok := c.status(now)
	if !ok {
		return
	}
	waits := s.Doing == status.Waits && now-since >= int64(compareAfter)
	if waits && !call.IsPairwise(s.Call.Kind) && !c.Opt.Unchecked {
		if f := c.compare(&s); f != nil {
			go c.Fail(f) // which takes locks of its own
			return
		}
		if c.Topo.Nodes() > 1 && n.brief != s.Calls+1 {
			n.brief = s.Calls + 1
			c.Site.publishBrief(s)
		}
	}
	after := publishAfter
	if t := c.Opt.Timeout; t > 0 {
		after = min(after, t/4)
	}
	switch {
	case waits && now-since >= int64(after):
		if !sameStanding(&s, &n.published) || now-n.publishedAt >= int64(status.Again(c.Size())) {
			c.publish(s, now)
		}
		if w := int64(c.Opt.StallWarn); w > 0 && now-since >= w && n.warned != since+1 {
			n.warned = since + 1
			c.Site.reportStall(c, s)
		}
	case n.heardAt != 0 && now-n.heardAt >= int64(follow) && n.published.Doing != status.Waits:
		n.heardAt = 0
	case n.heardAt != 0 || n.published.Doing == status.Waits:
		if s.Doing == status.Waits && now-since < int64(after) {
			s.Doing = status.AtWork
		}
		if !sameStanding(&s, &n.published) && (n.publishedAt < n.heardAt || now-n.publishedAt >= int64(publishEvery)) {
			c.publish(s, now)
		}
	}
}

// publishAtFailure publishes, once, where this rank stood when the Comm failed.
func (c *Member) publishAtFailure(now int64) {
	if end := c.note.atEnd; end != nil {
		c.note.atEnd = nil
		c.publish(*end, now)
	}
}

func sameStanding(a, b *status.Status) bool {
	return a.Calls == b.Calls && a.Doing == b.Doing && a.Call.Seq == b.Call.Seq && a.Call.Kind == b.Call.Kind && a.Peer == b.Peer && a.Failed == b.Failed
}

// publish tells all ranks of the job where this one stands. c.note is locked.
func (c *Member) publish(s status.Status, now int64) {
	n := &c.note
	s.Number, s.For = n.published.Number+1, c.awaited(&s)
	n.published, n.publishedAt = s, now
	s.SetName(c.Name())
	s.SetHost(c.Opt.Host)
	if c.Opt.Caller != nil && s.Doing != status.Outside {
		s.SetCaller(c.Opt.Caller())
	}
	c.Site.receiveStatus(&s, nil, true)
}

// compare finds a rank, of this host or one heard of, whose collective of that number was another.
func (c *Member) compare(s *status.Status) *call.Fault {
	if c.note.looked != s.Calls+1 {
		c.note.looked = s.Calls + 1
		if f := c.compareHeard(s); f != nil {
			return f
		}
	}
	c.Life.Lock()
	defer c.Life.Unlock()
	if c.Gone {
		return nil
	}
	return c.OtherCallAt(s.Calls)
}

// compareHeard compares with what ranks of other hosts have told.
func (c *Member) compareHeard(s *status.Status) *call.Fault {
	if other, ok := c.Site.Statuses.Contradiction(s); ok {
		return Disagree(s.Call, other.Call, int(other.Rank))
	}
	return nil
}

// Disagree is the mismatch of this rank's call with that of peer.
func Disagree(mine, theirs call.Record, peer int) *call.Fault {
	return &call.Fault{Code: call.Mismatch, Peer: peer, Mine: &mine, Theirs: &theirs}
}

// checkAgainst compares this rank's calls with what another has told.
func (c *Member) checkAgainst(other *status.Status) {
	if int(other.Rank) == c.rank || c.Opt.Unchecked || c.Cause.Load() != nil || other.Calls == 0 || call.IsPairwise(other.Call.Kind) {
		return
	}
	c.Life.Lock()
	var mine call.Record
	ok := false
	if !c.Gone {
		mine, ok = c.Local.Made(c.Me, other.Calls)
	}
	c.Life.Unlock()
	if ok && mine.Hash != other.Hash {
		go c.Fail(Disagree(mine, other.Call, int(other.Rank)))
	}
}
