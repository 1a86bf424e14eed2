package plane

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/algo"
)

// The late rank. The rank that a call waits for may itself wait: in the same call, for a rank that
// is late, or in another Comm. All of them wait about as long, and the limit of any may be the
// first to end. So a rank whose limit has ended follows the waits to ranks that wait for nobody,
// and names those of its Comm that are late.
//
// It never guesses. That a rank of its host is late is in the memory of the host. A rank of another
// host is late if that host says so now: whoever the fault would go by is asked where it stands
// (ask.go), and then the waits are followed anew. Where no answer comes nobody is named. What ranks
// have told of long waits (check.go) says only whom to ask, since they may have gone on.

// Unfinished is the fault of a call that ends unfinished as of ended, for a reason; peers are the
// ranks that it waits for, as far as it knows. It is the goroutine's that makes the calls.
func Unfinished(c *Member, ended, why error, peers ...int) *call.Fault {
	s := search{c: c, since: c.Current.began, peers: peers, lockstep: c.Current.lockstep}
	s.roll = c.Standing.callsRoll()
	if k := c.Current.running; k != nil {
		s.pairwise = k.Kind.Pairwise()
	} else if k, asleep := c.Standing.Sleeping(); asleep {
		s.pairwise = k.Kind.Pairwise()
	}
	return s.fault(ended, why)
}

// overdue is the fault of a call that has taken Options.Timeout.
func overdue(c *Member, peers ...int) *call.Fault {
	return Unfinished(c, context.DeadlineExceeded, notDone(c), peers...)
}

// FailElsewhere fails c because of a call that another engine makes, which is not done in time, for a reason.
func FailElsewhere(c *Member, why error) {
	if !c.Site.Job.TryHold() {
		return
	}
	defer c.Site.Job.Leave()
	c.Fail(unfinishedElsewhere(c, context.DeadlineExceeded, why))
}

// EndElsewhere fails c because the context of a call that another engine makes has ended with err,
// and waits for the cause.
func EndElsewhere(c *Member, err error) {
	if !c.Site.Job.TryHold() {
		return
	}
	defer c.Site.Job.Leave()
	c.Stop(unfinishedElsewhere(c, err, err))
}

func notDone(c *Member) error { return fmt.Errorf("not done after %v", c.Group.Timeout()) }

// unfinishedElsewhere is Unfinished of a call that another engine makes. Any goroutine may ask.
func unfinishedElsewhere(c *Member, ended, why error) *call.Fault {
	s := search{c: c, since: int64(c.Standing.Elsewhere.foreignSince() & math.MaxInt64)}
	return s.fault(ended, why)
}

// search is the search for the ranks that are late, as a call of c ends.
type search struct {
	c        *Member
	since    int64 // coarse: when the call began
	peers    []int // that it waits for
	pairwise bool  // it is between two ranks
	lockstep bool  // it is one of rounds among the ranks of this host
	roll     bool  // it calls the roll: all that are late are to be found
	asking   bool  // others may be asked

	answers map[int32]*answer      // by rank of the world
	ofComm  map[int]*status.Status // what has been answered of ranks of c
	mute    []int32                // ranks of the world that have not answered
	found   found                  // by the last look
}

// found is what a look has found.
type found struct {
	told   []status.Status // of all ranks
	seen   map[int32]bool  // ranks of the world
	late   []int           // ranks of c that are late, and wait for nobody
	behind []int           // those that are late, and may wait elsewhere
	ask    []int32         // ranks of the world to be asked
	other  int32           // a rank of the world that is none of c, and late in
	by     *status.Status  // the Comm of that one; nil: there is none
}

// fault is the fault of c's call.
func (s *search) fault(ended, why error) *call.Fault {
	c, me := s.c, s.c.Group.Rank()
	s.asking = call.CtxCode(ended) == call.Timeout // a rank that is canceled is at fault itself
	s.look()
	if inject.Wrong("plane.inquire") { // the rank that this one waits for is late
		s.found.late, s.found.ask = slices.Clone(s.peers), nil
	}
	s.inquire()
	if text := circleOf(s.found.told, c.Group.ID(), int32(me)); text != "" {
		var missing []int
		if s.roll { // which may be in the circle, and have not come all the same
			missing = slices.Sorted(slices.Values(s.found.behind))
		}
		f := call.CtxFault(ended, me, missing)
		f.Err = fmt.Errorf("%s: %w", text, why)
		return f
	}
	if inject.Wrong("plane.roll") && s.roll { // rank 0's limit is rank 0's fault
		s.found.late = []int{0}
	}
	slices.Sort(s.found.late)
	slices.Sort(s.found.behind)
	switch {
	case len(s.found.late) > 0:
	case s.found.by != nil: // not one of c is the fault
		f := call.CtxFault(ended, me, s.found.behind)
		if f.Err = fmt.Errorf("world rank %d is late in %s: %w", s.found.other, s.found.by.Name(),
			why); f.Code == call.Timeout {
			f.Peer = -1
		}
		return f
	case len(s.found.behind) > 0: // which wait for each other, or do not say for which
		s.found.late = s.found.behind
	case len(s.mute) > 0 && call.CtxCode(ended) == call.Timeout:
		why = fmt.Errorf("no answer from world rank %d: %w", s.mute[0], why)
	}
	f := call.CtxFault(ended, me, s.found.late)
	if f.Err = why; f.Peer < 0 {
		f.Err = fmt.Errorf("on rank %d: %w", me, why)
	}
	return f
}

// look follows the waits, from the ranks that are behind in the collective, or else from those that the call waits for.
func (s *search) look() {
	c := s.c
	s.found.told = slices.DeleteFunc(c.Site.Job.Statuses.Of(0), func(o status.Status) bool {
		// nobody waits for a rank that is lost any more
		return o.Doing == status.Waits && o.For >= 0 && c.Site.Job.IsLost(int(o.For))
	})
	if len(s.answers) > 0 {
		s.found.told = slices.DeleteFunc(s.found.told, func(o status.Status) bool { return s.answers[o.World] != nil })
		for _, a := range s.answers {
			s.found.told = append(s.found.told, a.all...)
		}
	}
	if own := standsNow(c, 0); own.Doing == status.Waits {
		s.found.told = append(slices.DeleteFunc(s.found.told,
			func(o status.Status) bool { return o.Comm == own.Comm && o.Rank == own.Rank }), own)
	}
	s.found.seen = map[int32]bool{int32(c.Group.World(c.Group.Rank())): true}
	s.found.late, s.found.behind, s.found.ask, s.found.by = nil, nil, nil, nil
	large := c.Group.Size() > fewRanks && len(s.peers) > 0
	c.Share.Look(func() {
		var from []int
		if !s.pairwise {
			from = c.Standing.lateRanks(s.ofComm, !large)
		}
		if len(from) == 0 && s.lockstep {
			from = c.Standing.unposted()
			s.found.behind = append(s.found.behind, from...)
			s.found.late = append(s.found.late, from...)
			return
		}
		if len(from) == 0 || large || s.roll {
			from = append(from, s.peers...)
		}
		if s.roll { // this rank itself may wait for a part of those that are late
			from = append(from, algo.RollRoot(c.Group.Topology()))
		}
		for _, r := range from {
			s.visit(int32(c.Group.World(r)), nil)
		}
	})
}

// visit follows the waits of rank w of the world, for which the rank that has said by waits. c's memory is looked at.
func (s *search) visit(w int32, by *status.Status) {
	if s.found.seen[w] || len(s.found.ask) == event.MissingMost {
		return
	}
	s.found.seen[w] = true
	r := s.c.Group.RankOf(int(w))
	if s.mayAsk(w) {
		s.found.ask = append(s.found.ask, w)
		return
	}
	late := r >= 0 && s.isLate(r)
	if late && !slices.Contains(s.found.behind, r) {
		s.found.behind = append(s.found.behind, r)
	}
	next, waits := s.awaited(w, r)
	if s.roll && r >= 0 && (late || !waits) {
		next = append(next, s.below(r)...)
	}
	for _, n := range next {
		s.visit(n.world, n.by)
	}
	switch {
	case waits:
	case late:
		s.found.late = append(s.found.late, r)
	case r < 0 && by != nil && s.found.by == nil:
		s.found.other, s.found.by = w, by
	}
}

// below lists those for which rank r of c will wait when it comes to the roll call, and those that
// it may wait for where it does not say: whom they wait for, each is asked itself.
func (s *search) below(r int) (list []next) {
	t := s.c.Group.Topology()
	roll, step := algo.RollCall(t, r), algo.Step{}
	for k := range roll.Steps {
		roll.At(k, &step)
		for _, m := range step.Recv {
			list = append(list, next{int32(s.c.Group.World(m.Peer)), nil})
		}
	}
	return list
}

// next is a rank of the world for which another waits, as that has said; by is nil where the memory
// of this host says so.
type next struct {
	world int32
	by    *status.Status
}

// awaited lists those for which rank w of the world waits, which is rank r of c, or -1. waits
// reports whether it waits at all.
func (s *search) awaited(w int32, r int) (list []next, waits bool) {
	c := s.c
	a := s.answers[w]
	now := c.Site.Job.Clock()
	for i := range s.found.told {
		o := &s.found.told[i]
		if o.World != w || a == nil && !o.StillWaits(now, s.since) || o.Doing != status.Waits {
			continue
		}
		if a == nil && (c.Site.Job.Net.TCP != nil || o.Comm == c.Group.ID()) {
			// it may have gone on since; or the memory of the host says more
			continue
		}
		waits = true
		if o.Comm == c.Group.ID() && len(a.awaits) > 0 {
			for _, p := range a.awaits {
				list = append(list, next{int32(c.Group.World(int(p))), o})
			}
		} else if o.For >= 0 {
			list = append(list, next{o.For, o})
		}
	}
	if a == nil && r >= 0 && c.Group.IsHere(r) {
		word := c.Share.Local.Waits(c.Group.Topology().Local(r)).Load()
		if word != 0 {
			waits = true
		}
		if p := int(word&math.MaxUint32) - 1; p >= 0 && p < c.Group.Size() {
			list = append(list, next{int32(c.Group.World(p)), nil})
		}
	}
	return list, waits
}

// isLate reports whether rank r of c has not come to c's call, as the memory of this host or an
// answer of r's has it. A call between two ranks has no place in the order of calls: to that a rank
// is late that is in no call.
func (s *search) isLate(r int) bool {
	c := s.c
	if o := s.ofComm[r]; o != nil && (s.pairwise || !c.Group.IsHere(r)) {
		if s.pairwise {
			return o.Doing == status.Outside
		}
		return int32(uint32(o.Calls)-s.calls()) < 0
	}
	switch l := c.Group.Topology().Local(r); {
	case !c.Group.IsHere(r):
		return false
	case s.pairwise:
		return c.Share.Local.Waits(l).Load() == 0
	default:
		return int32(uint32(c.Share.Local.Entered(l).Load()>>32)-s.calls()) < 0
	}
}

// calls is how many collectives c has begun, in 32 bits. c's memory is looked at.
func (s *search) calls() uint32 { return uint32(s.c.Share.Local.Entered(s.c.Share.Me).Load() >> 32) }

// inquire asks ranks where they stand, until nobody is left that the fault goes by and has not been
// asked, or c has failed for another reason.
func (s *search) inquire() {
	j := s.c.Site.Job
	soon, over := briefly(j, event.HoldFar), briefly(j, event.HoldMost)
	failed := func() bool { s.c.Site.Scan(); return s.c.Fate.cause.Load() != nil }
	for round := 0; len(s.found.ask) > 0 && len(s.found.late) < event.MissingMost && !failed(); round++ {
		if s.c.Group.Size() > fewRanks && (round == 1 || len(s.peers) == 0) {
			for late := briefly(j, othersTo); !late() && !failed(); {
				time.Sleep(NapMin)
			}
		}
		if soon() {
			s.mute = append(s.mute, s.found.ask...)
		} else {
			s.put(func() bool { return over() || failed() })
		}
		s.look()
	}
}

// put asks all that are to be asked, at once, and waits for their answers until it is over.
func (s *search) put(over func() bool) {
	c := s.c
	q := question{comm: c.Group.ID(), lasted: c.Site.Job.Clock() - s.since}
	c.Share.Look(func() { q.calls = s.calls() })
	type reply struct {
		from int32
		answer
		err error
	}
	replies := make(chan reply, len(s.found.ask))
	ctx, cancel := context.WithCancel(c.Site.Job.Background())
	defer cancel()
	for _, w := range s.found.ask {
		if a, here := stands(c.Site.Job, w, &q); here {
			replies <- reply{from: w, answer: a}
			continue
		}
		if c.Site.Job.Net.TCP == nil || livesIn(c.Site.Job, int(w)) { // it has left its Comms
			replies <- reply{from: w, err: errUnasked}
			continue
		}
		c.Site.Job.Life.Wg.Go(func() {
			a, err := askRank(ctx, c, w, &q)
			replies <- reply{w, a, err}
		})
	}
	for left := s.found.ask; len(left) > 0; {
		select {
		case r := <-replies:
			left = slices.DeleteFunc(slices.Clone(left), func(w int32) bool { return w == r.from })
			if r.err != nil || !r.fits(&c.Group, r.from, c.Site.Job.World.Topo.Size()) {
				s.mute = append(s.mute, r.from)
			} else {
				s.take(r.from, &r.answer)
			}
		case <-time.After(time.Millisecond):
			if over() {
				s.mute = append(s.mute, left...)
				return
			}
		}
	}
}
