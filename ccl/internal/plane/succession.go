package plane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/tcp"
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

// leads reports whether this process leads its host.
func (s *host) leads() bool {
	w := s.Job.leadOf(s.Node)
	return w >= 0 && s.isMine(w)
}

// isMine reports whether rank w of the world, which is on this host, is in this process.
func (s *host) isMine(w int) bool { return s.Procs[s.Job.World.Topo.Local(w)] == s.Mine }

// isKnownAway is gone.Ranks.IsAway.
func (j *Job) isKnownAway(w int) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.IsAway(w)
}

// alongWith lists the ranks of the process of rank w of another host.
func (s *host) alongWith(w int) []int {
	var ranks []int
	h := s.Job.World.Topo.Node(w)
	for l := range s.Job.World.Topo.Locals(h) {
		if o := s.Job.World.Topo.Rank(h, l); s.Job.Net.Addrs.At(o) == s.Job.Net.Addrs.At(w) {
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
		if s.near.inPlane {
			busy = append(busy, s)
		}
	}
	j.mu.Unlock()
	for _, s := range busy {
		if s.Here.leads() {
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
	if s.Here.ending() {
		return
	}
	ctx, cancel := WithinLived(s.Job, max(s.Job.peer, time.Second))
	defer cancel()
	var all sync.WaitGroup // one that does not answer must not keep the others waiting
	for _, h := range s.Here.beside() {
		w := s.Job.leadOf(h)
		all.Go(func() {
			if err := s.joinRank(ctx, w); err != nil && !s.Here.ending() && s.Job.peer > 0 && s.Job.leadOf(h) == w {
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
	takes := s.Job.World.Absence(s.Here.Node) != gone.Present && len(s.near.conns) > 0
	if takes {
		s.Job.World.Occupy(s.Here.Node)
	}
	s.Job.mu.Unlock()
	if takes {
		s.Post(event.New(0, event.NewLead, s.Here.Mine, -1, s.Here.Node, nil))
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
	if err := s.joinRank(ctx, w); err != nil && !s.Here.ending() {
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
	lost := s.Here.alongWith(w)
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
		case hasLeft(), s.Job.IsLost(w), s.Job.leadOf(h) != w, s.Here.ending():
			why = known
		case looks%asked == 0 && isEnding(s, h) && allRefuse(s, h):
			why = left
		}
		return why != unexplained
	})
	return why
}

// asked is how many looks others have to say what they know, where it seems that all leave.
const asked = 20

// isEnding is gone.Ranks.IsEnding.
func isEnding(s *Site, h int) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.Job.World.IsEnding(h, s.Here.Node, len(s.near.conns) == 0)
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
	return absent && allRefuse(s, h)
}

// allRefuse reports whether no process of host h listens any more, as the host itself says.
func allRefuse(s *Site, h int) bool {
	var last netip.AddrPort
	for l := range s.Job.World.Topo.Locals(h) {
		addr := s.Job.Net.Addrs.At(s.Job.World.Topo.Rank(h, l))
		if addr != last && !s.Job.Net.TCP.Refuses(addr, refusesWithin) {
			return false
		}
		last = addr
	}
	return true
}
