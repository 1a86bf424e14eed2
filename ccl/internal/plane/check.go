package plane

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// The monitor looks after calls that wait, at no cost to those that do not: a call that has slept
// leaves a note of itself, and a foreign call the time at which it began. After compareAfter its
// place in the order of calls is compared with that of the other ranks, whatever they wait for;
// after publishAfter, and more in large Comms, every rank of its Comm says where it stands, which
// the flight recorder, the search for deadlocks and the naming of late ranks go by.

const (
	compareAfter = 5 * time.Millisecond
	publishAfter = 500 * time.Millisecond
	publishMost  = 9 * time.Second       // after which a rank of the largest Comm says so
	publishEvery = 50 * time.Millisecond // at most, and not as often as the least wait that is told
	perRank      = 10 * time.Millisecond // later and more seldom for each rank of the Comm: all hear of all
	follow       = 4 * time.Second       // for which changes are told after another rank was heard to wait
	// for which a message whose two ends are there may not move, before that is reported
	stuckAfter = 3 * time.Second
)

// stallAfter is how long the call of s may wait before that is reported, 0 for ever.
func (c *Standing) stallAfter(s *status.Status) time.Duration {
	if w := c.hooks.StallWarn; w <= stuckAfter || s.Peer < 0 || !s.Call.Kind.Pairwise() {
		return w
	}
	if o, ok := c.Site.Job.Statuses.At(c.group.ID(), s.Peer); ok && status.Pair(s, &o) {
		return stuckAfter
	}
	return c.hooks.StallWarn
}

// publishes is after which time a rank of n says that its call waits, and how often it tells a
// change. A change is told before the next wait may be, so that no two ranks seem to wait for each
// other of which one has gone on.
func publishes(n int, timeout, warn time.Duration) (after, every time.Duration) {
	slower := time.Duration(n) * perRank
	after = min(publishAfter+slower, publishMost)
	if timeout > 0 {
		after = min(after, timeout/4)
	}
	if warn > 0 { // which goes by what has been told
		after = min(after, max(warn, publishAfter))
	}
	return after, min(publishEvery+slower, after*3/4)
}

// check is the monitor's look at c.
func (c *Member) check(now int64) {
	n := &c.Standing.note
	n.Lock()
	defer n.Unlock()
	if c.Fate.cause.Load() != nil {
		c.publishAtFailure(now)
		return
	}
	reports := c.Standing.reports.Swap(false)
	if !reports && !n.asleep && c.Standing.Elsewhere.foreignSince() == 0 && n.heardAt == 0 {
		return
	}
	s, since, ok := c.Standing.status(now)
	if !ok {
		return
	}
	waits := s.Doing == status.Waits && now-since >= int64(compareAfter)
	if waits && !s.Call.Kind.Pairwise() && !c.Group.Unchecked() {
		if f := c.Standing.compare(&s); f != nil {
			go c.Fail(f) // which takes locks of its own
			return
		}
		if c.Group.Topology().Nodes() > 1 && n.brief != s.Calls+1 {
			n.brief = s.Calls + 1
			c.Site.publishBrief(s)
		}
	}
	after, every := publishes(c.Group.Size(), c.Group.Timeout(), c.Hooks.StallWarn)
	if s.Doing == status.Waits && now-since < int64(after) {
		s.Doing = status.AtWork
	}
	if reports {
		r := s
		r.Report = true
		c.publish(r, now)
	}
	changed := !sameStanding(&s, &n.published) && now-n.publishedAt >= int64(every)
	switch {
	case waits && now-since >= int64(after):
		if changed || now-n.publishedAt >= int64(status.Again(c.Group.Size())) {
			c.publish(s, now)
		}
		if w := int64(c.Standing.stallAfter(&s)); w > 0 && now-since >= w && n.warned != since+1 {
			n.warned = since + 1
			c.Site.reportStall(c, s, n.pair.moved)
		}
	case n.heardAt != 0 && now-n.heardAt >= int64(follow+every) && n.published.Doing != status.Waits:
		n.heardAt = 0
	case changed && (n.heardAt != 0 || n.published.Doing == status.Waits):
		c.publish(s, now)
	}
}

// publishAtFailure publishes, once, where this rank stood when the Comm failed.
func (c *Member) publishAtFailure(now int64) {
	if end := c.Standing.note.atEnd; end != nil {
		c.Standing.note.atEnd = nil
		c.publish(*end, now)
	}
}

func sameStanding(a, b *status.Status) bool {
	return a.Calls == b.Calls && a.Doing == b.Doing && a.Call.Seq == b.Call.Seq && a.Call.Kind == b.Call.Kind &&
		a.Peer == b.Peer && a.Failed == b.Failed
}

// publish tells all ranks of the job where this one stands, or only the reporting host. c.note is locked.
func (c *Member) publish(s status.Status, now int64) {
	n := &c.Standing.note
	c.Site.flood.NumberStatus(&s)
	s.For = c.Standing.awaited(&s)
	if !s.Report { // which the other hosts do not hear
		n.published, n.publishedAt = s, now
	}
	s.SetName(c.Standing.Label.Name())
	s.SetHost(c.Hooks.Host)
	if s.Caller() == "" && c.Hooks.Caller != nil && s.Doing == status.Waits && !n.queued &&
		c.Standing.Elsewhere.foreignSince() == 0 {
		// it knows of blocking calls that have slept
		s.SetCaller(c.Hooks.Caller())
	}
	c.Site.receiveStatus(&s, nil, true)
}

// needsMonitor reports whether the monitor is to look at c again soon.
func (c *Standing) needsMonitor() bool {
	n := &c.note
	n.Lock()
	defer n.Unlock()
	if c.fate.cause.Load() != nil {
		return n.atEnd != nil
	}
	return n.asleep || n.heardAt != 0 || n.published.Doing == status.Waits || c.Bell.sleep.Load() ||
		c.Elsewhere.foreignSince() != 0 || c.fate.wordSince != 0 ||
		c.asked.Load() || c.reports.Load() || c.fate.proposal.Load() != nil
}

// explainFor is how long a Comm whose abort word is set waits for the event that says why.
const explainFor = time.Second

// checkAbortWord fails the Comm whose abort word says that it has failed, where nothing says why:
// whoever set the word may have been stopped since. It is the monitor's.
func (c *Member) checkAbortWord(now time.Duration) {
	if c.Fate.cause.Load() != nil {
		return
	}
	set := false
	var f *call.Fault
	c.Share.Look(func() {
		if set = c.Share.Local.Abort().Load() != 0; set {
			f = c.Fate.Outlived() // what this rank's call goes on after has ended the call of another rank
		}
		if set && f == nil && c.Fate.wordSince != 0 && now-c.Fate.wordSince > explainFor {
			f = c.Share.Unexplained(explainFor)
		}
	})
	switch {
	case !set:
		c.Fate.wordSince = 0
	case f != nil:
		c.FailHere(f)
	case c.Fate.wordSince == 0:
		c.Fate.wordSince = max(now, 1)
	}
}

// Unexplained is the failure of a Comm whose abort word is set, where nothing has said why for that
// long. It names the rank that set the word: what that has to say is held up, since another process
// of this host does not read its log, or since it was stopped itself.
func (c *Share) Unexplained(since time.Duration) *call.Fault {
	first := -1
	if l := c.Local.Abort().Load(); l > 0 && l <= uint64(c.N) {
		first = c.group.LocalRank(int(l) - 1)
	}
	return call.NewFault(call.Aborted, first, "the Comm has failed there, and why has not been said for %v", since)
}

// checkMembers looks after the calls that wait, and reports whether there are any, and whether a
// Comm fails for a reason that is not decided, or after the call under way.
func (j *Job) checkMembers(now int64) (waits, fails bool) {
	j.mu.Lock()
	all := j.comms.members(j.watch.members[:0])
	j.mu.Unlock()
	for _, c := range all {
		if c.Standing.asked.CompareAndSwap(true, false) {
			c.Standing.note.Lock()
			c.Standing.note.heardAt = now
			c.Standing.note.Unlock()
		}
		c.WakeCall()
		c.checkAbortWord(j.Time.Lived.Now())
		c.endLastCall(now)
		c.watchForeign(now)
		c.check(now)
		waits = waits || c.Standing.needsMonitor()
		fails = fails || c.Fate.proposal.Load() != nil && c.Fate.cause.Load() == nil
	}
	clear(all)
	j.watch.members = all
	return waits, fails
}

// endLastCall fails a Comm whose last call has ended, or does not move any more. It is the monitor's.
func (c *Member) endLastCall(now int64) {
	o := c.Fate.outlived.Load()
	if o == nil || c.Fate.cause.Load() != nil {
		return
	}
	if !c.Standing.isCalling() {
		failOn(c, o.fault, false)
		return
	}
	c.Standing.note.Lock()
	still := now - max(c.Standing.note.since, o.since)
	asleep, peer := c.Standing.note.asleep, int(c.Standing.note.on.peer)
	c.Standing.note.Unlock()
	if asleep && (still > int64(lastCallFor) || still > int64(2*tick) && c.Standing.empty(peer)) {
		go c.Fail(o.fault) // which takes locks of its own
	}
}

// Linger tells where this rank stood when its Comm failed, if nobody has told that yet. If it is
// the rank's last Comm of the job, it waits for as long as the failures of the job keep the rank
// there, and until its process has reported them. Each Close calls it once.
func (c *Member) Linger() {
	c.Standing.note.Lock()
	c.publishAtFailure(c.Site.Job.Clock())
	c.Standing.note.Unlock()
	if left, last := c.Site.Job.partFrom(c.Group.World(c.Group.Rank())); last {
		time.Sleep(left)
		awaitSnapshot(c.Site.Job)
	}
}

// publishBrief tells the other hosts of a call that waits, one rank for all of this host.
func (s *Site) publishBrief(st status.Status) {
	st.Brief = true
	if !s.Job.Statuses.HasBrief(&st) {
		s.flood.NumberStatus(&st)
		s.receiveStatus(&st, nil, true)
	}
}
