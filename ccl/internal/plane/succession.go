package plane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
)

// Who speaks for a host on the control plane: the process of its lowest rank that is not gone, its lead. That follows
// from what is known of ranks, so all agree on it as soon as they have heard the same. The next in line
// hears from the memory of its host that the lead has died or left, and connects with the leads of the hosts
// beside it; those expect it, since they have seen the end of their connection, or take it unasked. It tells what has
// happened on its host, hears what has happened elsewhere, and then says that it has come.

// leadOf is gone.Ranks.Lead.
func (j *Job) leadOf(h int) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Lead(h)
}

// isKnownAway is gone.Ranks.IsAway.
func (j *Job) isKnownAway(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.IsAway(w)
}

// ranksAlong lists the ranks of the process of rank w, which is on another host.
func (n *network) ranksAlong(topo algo.Topology, w int) []int {
	var ranks []int
	h := topo.Node(w)
	for l := range topo.Locals(h) {
		if o := topo.Rank(h, l); n.Addrs.At(o) == n.Addrs.At(w) {
			ranks = append(ranks, o)
		}
	}
	return ranks
}

// markLeft notes that ranks of host h have left in good order.
func (j *Job) markLeft(h int, ranks []int) {
	j.mu.Lock()
	newLead := j.World.Leave(h, ranks)
	j.mu.Unlock()
	if newLead {
		j.joinLeads()
	}
}

// joinLeads has a process that leads a host make its connections with the leads of the neighboring hosts, after one
// of these leads has gone.
func (j *Job) joinLeads() {
	j.mu.Lock()
	var busy []*Site
	for _, s := range j.sites {
		if s.Near.Joined {
			busy = append(busy, s)
		}
	}
	j.mu.Unlock()
	for _, s := range busy {
		if s.Here.Leads() {
			s.Job.Life.Wg.Go(s.closeRing)
		}
	}
}

// ringAfter is the time a host waits before it closes a gap: when a job ends, all leave at about the same
// time.
const ringAfter = 10 * time.Millisecond

// closeRing joins the hosts that are beside this one now.
func (s *Site) closeRing() {
	time.Sleep(ringAfter)
	if s.Here.Ending() {
		return
	}
	ctx, cancel := WithinLived(s.Job, max(s.Job.peer, time.Second))
	defer cancel()
	var all sync.WaitGroup // one that does not answer must not keep the others waiting
	for _, h := range s.Near.Beside() {
		w := s.Job.leadOf(h)
		all.Go(func() {
			if err := s.joinRank(ctx, w); err != nil && !s.Here.Ending() && s.Job.peer > 0 && s.Job.leadOf(h) == w {
				s.reportUnreachable(w, err)
			}
			s.announceLead()
		})
	}
	all.Wait()
	s.Job.Order.Lock()
	s.decide() // what the lead before this one has left
	s.Job.Order.Unlock()
	s.Scan()
}

// WithinLived is for connecting with another host: it ends once this process has lived for d, or
// leaves its job. One that gets no turn on a processor would else take the other host for one that
// cannot be reached.
func WithinLived(j *Job, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(j.Background())
	over := j.deadline(d)
	go func() {
		defer cancel()
		t := time.NewTicker(10 * tick)
		defer t.Stop()
		for !over() {
			select {
			case <-ctx.Done():
				return
			case <-j.Life.StopCh:
				return
			case <-t.C:
			}
		}
	}()
	return ctx, cancel
}

// announceLead says that this process leads its host, if another did.
func (s *Site) announceLead() {
	s.Job.mu.Lock()
	w := s.Job.World.Lead(s.Here.Node)
	takes := w >= 0 && s.Here.IsMine(w) && s.Near.AwaitLead()
	if takes {
		s.Job.World.Occupy(s.Here.Node)
	}
	s.Job.mu.Unlock()
	if takes {
		s.Post(event.New(0, event.NewLead, s.Here.Mine, -1, s.Here.Node, nil))
	}
}

// handOver has a process that leads a host, and leaves its job, stay until the next of that host has come, or
// nobody is left: it says what becomes of the next until then. So all have left a host whose lead has left in
// good order and where no other comes, unless the next takes longer than a report does where processes run.
func (all sites) handOver() {
	for _, s := range all {
		if !s.Near.AreFollowed() || !s.Here.Leads() {
			continue
		}
		for _, w := range slices.Backward(s.Here.RanksOf(s.Here.Mine)) { // or another of them would be the next
			s.Post(event.New(0, event.RankLeft, w, -1, s.Here.Node, nil))
		}
		await(s.Job, SoonFor, func() bool {
			s.Job.Time.Coarse.WakeMonitor() // it sees processes leave and end
			s.Scan()
			s.Job.mu.Lock()
			defer s.Job.mu.Unlock()
			return !s.Near.AwaitLead()
		})
	}
}

// checkCutShort deals with a connection to rank w that ended before it carried anything: the other end was leaving when
// it was reached, or it was lost just then. Where nobody can say which, it is asked once more.
func (s *Site) checkCutShort(w int) {
	if s.LeftInOrder(w) {
		return
	}
	ctx, cancel := WithinLived(s.Job, max(s.Job.peer, time.Second))
	defer cancel()
	if err := s.joinRank(ctx, w); err != nil && !s.Here.Ending() {
		s.reportUnreachable(w, err)
	}
}

// reportUnreachable reports that the lead of a host, rank w of the world, cannot be reached, unless
// that is explained. Where others have just left in good order and nobody listens any more, it has,
// too. Where a lead before it was lost, and nobody listens on the whole host, all of that are lost.
func (s *Site) reportUnreachable(w int, err error) {
	why := errors.New("its host cannot be reached")
	var u *tcp.Unmade
	if errors.As(err, &u) {
		why = fmt.Errorf("%w: %w", why, u)
	}
	lost := s.Job.Net.ranksAlong(s.Job.World.Topo, w)
	if errors.Is(err, tcp.ErrRefused) {
		why = endOf(s, w, true) // as of now: while it is waited for what others say, that host is not heard
		switch explain(s, w) {
		case left:
			s.Post(event.New(0, event.ProcessLeft, w, -1, s.Job.World.Topo.Node(w), nil))
			return
		case known:
			return
		}
		if h := s.Job.World.Topo.Node(w); IsDeserted(s, h) {
			s.Job.mu.Lock()
			lost = s.Job.World.Staying(h)
			s.Job.mu.Unlock()
		}
	}
	for _, o := range lost {
		s.Lost(o, why)
	}
}

// leftYet is the question whether the process of rank w of the world has left in good order, as known
// says, such as KnownLeft. A process that asks for the first time asks w's host, too, and again later; the
// answer takes a moment.
func (s *Site) leftYet(w int, known func(w int) bool) func() bool {
	asked, again := false, time.Duration(0)
	return func() bool {
		s.Scan()
		if known(w) {
			return true
		}
		if now := s.Job.Time.Lived.Now(); !asked || now >= again {
			asked, again = true, now+askAgain
			s.Post(event.New(0, event.AskLeft, w, -1, s.Here.Node, nil))
		}
		return false
	}
}

// EndedYet is the question whether the process of rank w of the world is known to have ended, in
// good order or not: then it will not listen again. Any goroutine may ask.
func (s *Site) EndedYet(w int) func() bool {
	left := s.leftYet(w, s.KnownLeft)
	return func() bool {
		if !s.Job.TryHold() { // this process has left, and asks in vain
			return true
		}
		defer s.Job.Leave()
		return left() || s.Job.IsLost(w)
	}
}

// LeftInOrder asks the host of rank w of the world whether w's process has left in good
// order. It may take a moment.
func (s *Site) LeftInOrder(w int) bool {
	await(s.Job, asked*tick, s.leftYet(w, s.KnownLeft))
	return s.KnownLeft(w)
}

// askAgain is after how long the host of a rank is asked once more, in time lived: while no process
// leads that host, a question is lost.
const askAgain = time.Second

// endOf is why s takes the ranks of the process of rank w of the world, on another host, for lost,
// where that seems to have ended. refused says that its host answers that nobody listens at its
// port any more.
func endOf(s *Site, w int, refused bool) error {
	switch {
	case !refused: // a cut may look like an end
		return fmt.Errorf("%w, or its host cannot be reached", watch.ErrEnded)
	case !IsCertain(s, w):
		return fmt.Errorf("%w, perhaps after it had given up this host", watch.ErrEnded)
	}
	return watch.ErrEnded
}

// throughRelay is why, the end of connection c, or more if c passed a relay: that may be what ended.
func throughRelay(c *auth.Stream, why error) error {
	if by, ok := c.RemoteAddr().(interface{ Relay() string }); ok {
		return fmt.Errorf("%w, or the relay at %s, or its host, cannot be reached", watch.ErrEnded, by.Relay())
	}
	return why
}

// IsCertain reports whether the word of the host of rank w of the world that the rank is there no
// more, since its process has ended or has closed the Comm, makes it certain that it has not gone
// on without the process of s.
func IsCertain(s *Site, w int) bool {
	// Nobody is given up for silence if there is no limit.
	return !s.isGivenUp() && (s.Job.peer <= 0 || s.Near.AreHeard(w))
}

// explanation is why nobody listens any more where a lead did.
type explanation uint8

const (
	unexplained explanation = iota
	known                   // it has left in good order, or is lost, or leads no more, as others have said
	left                    // it has left in good order, as it seems
)

// explain waits for others to say what has become of rank w of the world, where nobody listens any
// more. Its host is asked, and those to which it has said good bye tell so: that may pass processes
// that wait for their turn on a processor. As long as a process that is not lost may be silent, it
// is not to be taken for lost; nor for one that has left, as long as one of its host listens, which
// knows.
func explain(s *Site, w int) (why explanation) {
	hasLeft, h, looks := s.leftYet(w, s.KnownLeft), s.Job.World.Topo.Node(w), 0
	await(s.Job, LossReportWithin(s, w), func() bool {
		looks++
		switch {
		case hasLeft(), s.Job.IsLost(w), s.Job.leadOf(h) != w, s.Here.Ending():
			why = known
		case looks%asked == 0 && s.Near.AreEnding(h) && s.Job.Net.allRefuse(s.Job.World.Topo, h):
			why = left
		}
		return why != unexplained
	})
	return why
}

// asked is how many looks others have to say what they know, where it seems that all leave.
const asked = 20

// ReportWithin is how long the process of s waits for another process to report a failure. A
// process that is silent for longer is lost, which is reported itself, unless there is no such
// limit.
func ReportWithin(s *Site) time.Duration {
	limit := s.Here.Processes.Silence()
	if s.Job.peer <= 0 {
		limit = max(limit, reportAfter)
	}
	return SoonFor + limit
}

// LossReportWithin is how long the process of s waits for the report on rank w of the world, which
// does not listen or answer any more. That is ReportWithin, since its host may say so late; but no
// longer than any report takes where nobody is left there to say anything: when a whole host dies,
// each of its processes would else be found only that much after the one before it.
func LossReportWithin(s *Site, w int) time.Duration {
	if IsDeserted(s, s.Job.World.Topo.Node(w)) {
		return SoonFor
	}
	return ReportWithin(s)
}

// IsDeserted reports whether the lead of host h has gone, the next has not come, and nobody listens there any more.
func IsDeserted(s *Site, h int) bool {
	s.Job.mu.Lock()
	absent := s.Job.World.Absence(h) != gone.Present
	s.Job.mu.Unlock()
	return absent && s.Job.Net.allRefuse(s.Job.World.Topo, h)
}

// allRefuse reports whether no process of host h listens any more, as the host itself says.
func (n *network) allRefuse(topo algo.Topology, h int) bool {
	var last netip.AddrPort
	for l := range topo.Locals(h) {
		addr := n.Addrs.At(topo.Rank(h, l))
		if addr != last && !n.TCP.Refuses(addr, refusesWithin) {
			return false
		}
		last = addr
	}
	return true
}
