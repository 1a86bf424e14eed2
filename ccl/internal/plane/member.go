package plane

import (
	"context"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
)

// Member is one rank of one Comm as the control plane sees it, and what it does: the steps of its
// calls, and failing. Its parts lie in it by value, so each part is one step from a pointer to the
// Member. Each part has the methods that need no other part.
type Member struct {
	Site     *Site
	Clock    *Clock      // of the job
	Group    group.Group // which rank of which Comm, and what all ranks of the Comm have agreed on
	Hooks    Hooks       // whom it tells
	Share    Share       // what it shares with the ranks of its host
	Order    Order       // the calls it has made
	Current  Current     // the one under way
	Fate     Fate        // whether and why its Comm has failed
	Standing Standing    // all that is known of it
}

// Init makes c rank rank of a Comm, with what the ranks of its host share.
func (c *Member) Init(at *Site, id uint64, world group.Members, topo algo.Topology, rank int, local *region.Region,
	opt Options) {
	if local.Layout = watch.LayoutOf(at.Here.Host); local.N == 2 {
		local.Whole = local.Layout.WholeTwo
	}
	c.Site, c.Clock = at, &at.Job.Time.Coarse
	c.Group, c.Hooks = group.New(id, world, topo, rank, opt.Agreed), opt.Hooks
	c.Share.Local, c.Share.Me, c.Share.N = local, topo.Local(rank), local.N
	c.Share.Ranks = make([]int, local.N)
	for r := range c.Share.Ranks {
		c.Share.Ranks[r] = c.Group.LocalRank(r)
	}
	c.Share.Host, c.Share.views = at.Here.Host, []shm.Place{shm.PlaceAt(local.Off, region.Bytes(local.N))}
	c.Standing.Bell = bell{rung: make(chan struct{}, 1)}
	c.Fate.ctx, c.Fate.cancel = context.WithCancel(at.Job.Background())
	join(c)
	c.Order.BeginAt(firstNumber())
}

// join has the parts of c know each other.
func join(c *Member) {
	c.Share.group = &c.Group
	c.Order.group, c.Order.share, c.Order.unchecked = &c.Group, &c.Share, c.Group.Unchecked()
	if l := c.Share.Local; l != nil {
		c.Order.entered, c.Order.records, c.Share.sleepers = l.Entered(c.Share.Me), l.Records(c.Share.Me), l.Sleepers()
		c.Share.Asked.count, c.Fate.word = l.Wanted(c.Share.Me), l.Abort()
	}
	s := &c.Standing
	s.Site, s.group, s.hooks, s.share, s.order, s.current, s.fate = c.Site, &c.Group, &c.Hooks, &c.Share, &c.Order,
		&c.Current, &c.Fate
}

// Now is the coarse time since the job began, in nanoseconds.
func (c *Standing) Now() int64 { return c.Site.Job.Clock() }

// Fail fails the Comm on all its ranks, with f or with what came before it: see settle.go. It does
// not wait for a decision.
func (c *Member) Fail(f *call.Fault) {
	if c.Fate.cause.Load() != nil || !c.Site.Job.TryHold() { // failed, or the job is over
		return
	}
	defer c.Site.Job.Leave()
	if c.Fate.closed.Load() {
		return
	}
	if len(f.Missing) > event.MissingMost {
		f.Missing = f.Missing[:event.MissingMost] // as all the others have it
	}
	if !c.Fate.proposal.CompareAndSwap(nil, f) {
		if f = c.Fate.Outlived(); f == nil {
			return
		}
		c.FailHere(f) // the call under way was not to be the last
	}
	e := eventOf(c, f)
	if e.IsDisputed(c.Group.Size()) {
		c.dispute(e)
		return
	}
	c.Site.Post(e)
}

// Ended fails the Comm because of a call that could not begin, and waits for the cause. On a Comm whose job is over in
// this process it does nothing.
func (c *Member) Ended(f *call.Fault) *call.Fault {
	if !c.Site.Job.TryHold() { // or the memory of the host, which settle looks at, could go meanwhile
		return f
	}
	defer c.Site.Job.Leave()
	return c.Stop(f)
}

// Abort fails the Comm of c since the program asks for it, and waits until it is decided whether
// that is the cause. Where the log of the host has no room for it, nobody decides soon: the other
// ranks of the host learn that the Comm has failed, and c need not wait.
func Abort(c *Member, f *call.Fault) {
	if c.Fate.closed.Load() || !c.Site.Job.TryHold() {
		return
	}
	defer c.Site.Job.Leave()
	if c.Fail(f); c.Site.Here.Log.HasKept() {
		c.FailHere(f)
	} else {
		c.Settle(f)
	}
}

// FailHere fails the Comm on this rank, and wakes the ranks of this host.
func (c *Member) FailHere(f *call.Fault) bool { return failOn(c, f, true) }

// failOn is FailHere of c. What comes after the end of a process that the call under way has
// outlived is not the cause: ranks that were in no call have failed by that end. If aloud, the
// ranks of this host are told by the abort word of the Comm: not where this rank is in no call and
// those that are in one are to go on.
func failOn(c *Member, f *call.Fault, aloud bool) bool {
	if last := c.Fate.Outlived(); last != nil {
		f = last
	}
	if c.Fate.cause.Load() == nil {
		c.Standing.note.Lock()
		if s, _, ok := c.Standing.status(c.Site.Job.Clock()); ok && c.Standing.note.atEnd == nil {
			s.Failed, s.Report = true, isForReport(c, f)
			c.Standing.note.atEnd = &s
		}
		c.Standing.note.Unlock()
	}
	var sleeping []int
	first := false
	c.Share.Look(func() {
		// Before the cause: a rank that sees that leaves its call, and one that begins to write after that must see the word
		// (see MayTouch).
		if aloud {
			c.Share.Local.Abort().CompareAndSwap(0, 1+uint64(c.Share.Me))
		}
		sleeping = c.Share.ClaimSleepers()
		if first = c.Fate.cause.CompareAndSwap(nil, f); first {
			c.Fate.proposal.CompareAndSwap(nil, f)
			c.Fate.failedAt.Store(int64(c.Site.Job.Time.Coarse.Exact()))
		}
	})
	c.Ring(sleeping)
	if !first {
		return false
	}
	if d := keeps(&c.Group, f); d > 0 {
		c.Site.Job.stayFor(d, time.Duration(c.Fate.failedAt.Load()))
	}
	c.WakeCall()
	if c.Hooks.OnFail != nil {
		c.Hooks.OnFail(f, false)
	}
	c.Fate.cancel()
	return true
}

// isForReport reports whether only the reporting host needs to hear where this rank stood when c
// failed with f. A loss reaches all ranks as an event. But ranks that were told of this rank's wait
// must hear that the wait is over. c.Standing.note is locked.
func isForReport(c *Member, f *call.Fault) bool {
	if f.Code != call.RankLost || f.Peer < 0 || c.Standing.note.published.Doing == status.Waits {
		return false
	}
	c.Site.Job.mu.Lock()
	defer c.Site.Job.mu.Unlock()
	return c.Site.Job.World.ReportsApart(c.Group.World(f.Peer))
}

// Enlist makes c known to the monitor: from now on it can fail.
func (c *Member) Enlist() {
	// all processes of this host have said by now where they may run
	c.Share.Spins = spinsOf(&c.Site.Here, c.Standing.RanksHere())
	c.Share.agreeOnCrowding()
	c.Standing.setReadPreference()
	c.Site.Job.add(c)
}

// A rank stays in its job for a while after a Comm has failed: its process may be one through which
// the report of the failure travels, and that tells where all ranks stood. So the Close of its last
// Comm waits. That of another does not: a program that closes the Comms of a part of its ranks goes
// on with the others.
const (
	lingerFor  = 100 * time.Millisecond // where the Comm spans hosts
	lingerHere = snapshotAfter + 4*tick
)

// keeps is how long the failure f of a Comm keeps its ranks in their job.
func keeps(g *group.Group, f *call.Fault) time.Duration {
	switch {
	case g.Size() == 1:
		return 0
	case g.Topology().Nodes() > 1:
		return lingerFor
	case alarming(f.Code):
		return lingerHere
	}
	return 0
}

// alarming reports whether a failure is one that nobody has asked for.
func alarming(code call.Code) bool {
	return code != call.Closed && code != call.Canceled && code != call.Aborted
}

// Where says how two ranks of the Comm talk.
func (c *Standing) Where(peer int) string {
	if !c.group.IsHere(peer) {
		return "TCP"
	}
	return c.inside()
}

// inside says what the ranks of a host talk over.
func (c *Standing) inside() string {
	if c.Site.Here.Host.Shared() {
		return "shared memory"
	}
	return "memory"
}

// Die makes this rank one that is lost, to all other ranks and itself, for the reason given, nil if
// its process has ended, which is certain. It stands in for the end of a process that has other
// ranks, too. It returns when that is settled.
func (c *Member) Die(cause error) {
	if cause == nil {
		cause = watch.ErrEnded
	}
	c.Site.Lost(c.Group.World(c.Group.Rank()), cause)
	for over := lived.For(time.Second); c.Fate.cause.Load() == nil && !over(); {
		time.Sleep(tick)
	}
}

// Isolate fails the Comm on this rank alone, which sees the lowest other rank as lost.
func (c *Member) Isolate(cause error) *call.Fault {
	other := 0
	if c.Group.Rank() == 0 {
		other = min(1, c.Group.Size()-1)
	}
	c.FailHere(&call.Fault{Code: call.RankLost, Peer: other, Err: cause})
	return c.Fate.cause.Load()
}

// Transport is what the ranks talk over.
func (c *Standing) Transport() string {
	nodes := c.group.Topology().Nodes()
	if nodes == 1 {
		return c.inside()
	}
	between := "TCP (" + c.Site.Job.Net.iface + ")"
	if w := c.Site.Job.Net.TCP.Wire(); w != auth.Plain {
		between = "TCP (" + c.Site.Job.Net.iface + ", " + w.String() + ")"
	}
	if nodes == c.group.Size() {
		return between
	}
	return c.inside() + " and " + between
}

// Abandon drops a Comm that has not begun.
func (c *Member) Abandon() {
	c.Fate.cancel()
	if c.Group.ID() != group.WorldID && c.Site.Job.Net.TCP != nil {
		// the world may be made again, in another try at sharing memory
		c.Site.Job.Net.TCP.Forget(c.Group.ID(), uint32(c.Group.Rank()))
	}
	c.Share.Drop()
}

// Apart is why ranks that seemed to be on this rank's host share no memory with it, where this rank is to tell.
func (c *Share) Apart() string { return c.apart }

// eventOf is f, which this rank reports.
func eventOf(c *Member, f *call.Fault) event.Event {
	e := event.New(c.Group.ID(), f.Code, f.Peer, c.Group.Rank(), c.Site.Here.Node, f.Err)
	e.SetMissing(f.Missing)
	if f.Certain {
		e.Loss = event.Certain
	}
	if f.Theirs != nil && (f.Code == call.Closed || f.Code == call.Mismatch) {
		e.Theirs = *f.Theirs
	}
	switch {
	case f.Code != call.Mismatch:
	case f.Mine != nil:
		e.Call = *f.Mine
	default: // found by the goroutine that makes the call
		e.Call = c.Order.Entered(0)
	}
	return e
}

// SetApart says why ranks that seemed to be on this rank's host share no memory with it.
func (c *Share) SetApart(why string) { c.apart = why }

// RanksHere is how many ranks of the job live in this process.
func (c *Standing) RanksHere() int { return int(c.Site.Job.Life.here.Load()) }

// Stop fails the Comm with f and returns what it failed with.
func (c *Member) Stop(f *call.Fault) *call.Fault {
	c.Fail(f)
	return c.Settle(f)
}

// Settle waits for the cause to be decided; f is what this rank believes.
func (c *Member) Settle(f *call.Fault) *call.Fault {
	if last := c.Fate.Outlived(); last != nil {
		failOn(c, last, false)
	}
	for over := briefly(c.Site.Job, 2*SettleFor); c.Fate.cause.Load() == nil; {
		if c.Fate.closed.Load() || over() {
			c.FailHere(f) // the job is over, or its log is stuck: nobody else will say
			break
		}
		time.Sleep(200 * time.Microsecond)
		c.Site.Scan()
	}
	if cause := c.Fate.cause.Load(); cause != nil {
		return cause
	}
	return f
}
