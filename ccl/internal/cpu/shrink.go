package cpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/agree"
)

// Shrink agrees with the other ranks on who is alive, and makes the Comm of those. What they
// say to each other, and why it ends with one membership, is in package agree. Here is what
// that knows nothing of: who is gone, how notices travel, and deadlines.
//
// Who is gone is the failure detector's to say (death words, pulses, beats), and, of what is
// true for all, the connection to that rank: see line. Messages go over pipes inside a
// host and over fresh TCP connections to the lead from other hosts, so nothing depends
// on the dead, nor on the connections of the failed Comm. The cost is three round trips
// and one connection for each rank on another host than the lead's, closed at the end.

// agreement is this rank's part in one Shrink.
type agreement struct {
	*agree.Party
	c       *shrinker
	attempt uint32
	rank    int
	began   time.Time
	beaten  time.Time // when this rank last said that it is alive
	lines   []*line
	nap     time.Duration
	quit    []time.Time // when each rank was first seen to have given up
	came    bool        // the lead has said something
	why     *Fault      // why another gave up
	made    uint64      // the memory that this rank has made for the proposal
	madeFor int         // ranks
}

// shrinker makes this rank's part in the Shrinks of its Comm.
type shrinker struct {
	*Links
	attempts uint32
	talks    map[int]*line // inside this host: a pipe is made once
}

// agree agrees with the other ranks on who is alive.
func (c *shrinker) agree(ctx context.Context) (*agreement, *Fault) {
	c.attempts++
	a := &agreement{c: c, attempt: c.attempts, rank: c.rank, began: time.Now(), lines: make([]*line, c.Size()), quit: make([]time.Time, c.Size())}
	a.Party = agree.New(c.rank, c.Size(), a.make)
	f := a.run(ctx)
	a.end(f == nil)
	return a, f
}

// run returns once all living ranks know the decision.
func (a *agreement) run(ctx context.Context) *Fault {
	for {
		gone := a.look()
		if f := a.trouble(); f != nil {
			return f
		}
		a.hear() // what those have said who are gone is heard to the end
		a.Look(func(r int) bool { return gone[r] })
		a.send()
		if a.End == agree.Open {
			if f := a.wait(ctx); f != nil {
				return f
			}
		}
		switch a.End {
		case agree.Agreed:
			return nil
		case agree.Out:
			return fault(RankLost, a.rank, "the others have given this rank up")
		case agree.GaveUp:
			switch {
			case a.Failed != nil:
				return a.giveUp(fault(Backend, a.rank, "%w", a.Failed))
			case a.why == nil:
				return a.giveUp(fault(Canceled, a.Quitter, "rank %d gave up", a.Quitter))
			case a.Leads():
				return a.giveUp(a.why)
			}
			return a.why
		}
	}
}

// look finds out who is gone, and tells the Party of those that have come to their end, this rank among them.
func (a *agreement) look() []bool {
	c := a.c
	c.site.scan()
	gone := make([]bool, len(a.lines))
	var over []int
	for r := range gone {
		switch {
		case r == a.rank:
		case c.site.isLost(c.members.world(r)):
			gone[r] = true
		case c.topo.Node(r) == c.topo.Node(c.rank):
			l := c.topo.Local(r)
			closed := c.local.state(l).Load() != stateOpen // looked at before what it has done
			switch word := c.local.agreed(l).Load(); {
			case word == uint64(a.attempt)<<1:
				over = append(over, r)
			case closed:
				gone[r] = true
			case word > uint64(a.attempt)<<1:
				a.quitted(r)
			}
		case a.lines[r] == nil:
		case a.lines[r].done:
			over = append(over, r)
		case a.lines[r].quit:
			a.quitted(r)
		default:
			gone[r] = a.lines[r].gone
		}
	}
	if len(over) > 0 {
		c.site.scan() // who has decided without this rank has heard before that it is lost
	}
	if c.site.isLost(c.members.world(a.rank)) {
		a.Lost()
	}
	for _, r := range over {
		a.Over(r)
	}
	return gone
}

// trouble says that this rank cannot connect with the others. It is no member then, and says so.
func (a *agreement) trouble() *Fault {
	for _, l := range a.lines {
		if l == nil || l.trouble == nil {
			continue
		}
		a.isLost(fmt.Errorf("it cannot connect: %w", l.trouble))
		return fault(Backend, a.rank, "cannot connect: %w", l.trouble)
	}
	return nil
}

// isLost tells all ranks of the job that this one counts as lost, and why.
func (a *agreement) isLost(why error) {
	w := a.c.members.world(a.rank)
	a.c.site.lost(w, why)
	for until := time.Now().Add(2 * settleFor); !a.c.site.isLost(w) && time.Now().Before(until); a.c.site.scan() {
		time.Sleep(agreeNapMax)
	}
}

// hear reads what has come from those that this rank waits for.
func (a *agreement) hear() {
	missing := a.Missing()
	for _, r := range missing {
		l := a.line(r)
		for a.Waits(r) {
			n, ok := l.hear()
			if l.renewed {
				l.renewed = false
				a.Renewed(r)
			}
			if !ok {
				break
			}
			a.nap = 0
			if n.attempt != a.attempt {
				continue
			}
			switch n.kind {
			case agree.Quit:
				if a.Leads() {
					a.why = a.given(n, r, missing)
				} else {
					a.why = a.given(n, r, nil)
				}
			case agree.Decide:
				inject.At("shrink.decided")
			}
			a.came = a.came || !a.Leads()
			a.Hear(r, agree.Notice{Kind: n.kind, Ballot: n.ballot, Ranks: n.ranks, Offs: n.offs})
			a.send()
		}
	}
}

// send sends what the Party has to say. That it gives up is said with the reason: see giveUp.
func (a *agreement) send() {
	for _, m := range a.Post {
		l := a.line(m.To)
		switch m.Kind {
		case agree.Quit:
			continue
		case agree.Propose:
			inject.At("shrink.propose")
		case agree.Ready:
			inject.At("shrink.ready")
		case agree.Decide:
			inject.At("shrink.decide")
		case agree.Done:
			inject.At("shrink.done")
		}
		l.say(notice{kind: m.Kind, ballot: m.Ballot, ranks: m.Ranks, offs: m.Offs})
	}
	a.Post = a.Post[:0]
}

// outOfTime waits a moment for the lead, which has come, to say who has not.
func (a *agreement) outOfTime(l *line, f *Fault) *Fault {
	for range 100 {
		if n, ok := l.hear(); ok && n.attempt == a.attempt && n.kind == agree.Quit {
			return &Fault{Code: Timeout, Peer: a.given(n, l.peer, nil).Peer, Missing: n.missing(), Err: f.Err}
		}
		l.push()
		time.Sleep(agreeNapMax)
	}
	f.Peer, f.Missing = -1, nil
	return f
}

// giveUp tells the others that it came to nothing, and why.
func (a *agreement) giveUp(f *Fault) *Fault {
	for _, l := range a.lines {
		if l != nil {
			l.say(notice{kind: agree.Quit, code: f.Code, ballot: uint64(a.c.blamed(f) + 1), ranks: ranks32(f.Missing)})
		}
	}
	return f
}

// given is the fault of an agreement that rank r has given up. Where it ran out of time,
// those that the lead misses are to blame, and not the lead.
func (a *agreement) given(n notice, r int, missing []int) *Fault {
	f := &Fault{Code: n.code, Peer: int(uint32(n.ballot)) - 1, Missing: n.missing()}
	if f.Code == Timeout && missing != nil {
		f.Missing = slices.DeleteFunc(slices.Clone(missing), func(m int) bool { return m == r })
		f.Peer = r
	}
	if len(f.Missing) > 0 {
		f.Peer = f.Missing[0]
	}
	if f.Peer < 0 || f.Peer >= len(a.lines) {
		f.Peer = r
	}
	f.Err = fmt.Errorf("rank %d gave up", r)
	return f
}

const (
	agreeNapMin = 20 * time.Microsecond
	agreeNapMax = time.Millisecond
	quitAfter   = 100 * time.Millisecond // in which the lead may say why
)

// wait waits a moment, in which this rank says that it is alive.
func (a *agreement) wait(ctx context.Context) *Fault {
	for r, at := range a.quit {
		if !at.IsZero() && time.Since(at) > quitAfter {
			if a.Dropped(r); a.End != agree.Open {
				return nil
			}
		}
	}
	if f := a.expired(ctx); f != nil && a.MayQuit() {
		a.Give()
		if a.giveUp(f); f.Code == Timeout && a.came && !a.Leads() {
			f = a.outOfTime(a.line(a.Lead()), f)
		}
		return f
	}
	if now := time.Now(); now.Sub(a.beaten) > beatEvery {
		a.beaten = now
		if a.c.topo.Nodes() > 1 {
			a.offered()
		}
		for _, l := range a.lines {
			if l != nil && !l.inside() && len(l.queue) == 0 {
				l.say(notice{kind: agree.Alive})
			}
		}
	}
	for _, l := range a.lines {
		if l != nil {
			l.push()
		}
	}
	a.c.site.rouse() // its lines and the log are to be read soon
	a.nap = max(agreeNapMin, min(2*a.nap, agreeNapMax))
	time.Sleep(a.nap)
	return nil
}

// expired says that the time of this Shrink is over.
func (a *agreement) expired(ctx context.Context) *Fault {
	if a.c.closing.Load() {
		return fault(Closed, a.rank, "")
	}
	if err := ctx.Err(); err != nil {
		return ctxFault(err, a.Missing())
	}
	if t := a.c.opt.Timeout; t > 0 && time.Since(a.began) > t {
		f := ctxFault(context.DeadlineExceeded, a.Missing())
		f.Err = fmt.Errorf("not done after %v", t)
		return f
	}
	return nil
}

// gaveUp marks the word of a rank whose last Shrink came to nothing.
const gaveUp = 1

// quitted notes that rank r has given this agreement up. The lead gets a moment to say why.
func (a *agreement) quitted(r int) {
	if a.quit[r].IsZero() {
		a.quit[r] = time.Now()
	}
}

// offered finds ranks of other hosts that are in the next agreement already.
func (a *agreement) offered() {
	c := a.c
	for r := range a.lines {
		if r != a.rank && c.topo.Node(r) != c.topo.Node(c.rank) &&
			c.site.tcp.Offered(tcp.MakeKey(c.agreementID(a.attempt+1), linesOf, uint32(c.rank), uint32(r)), uint32(c.rank)) {
			a.quitted(r)
		}
	}
}

// line is the line to rank r.
func (a *agreement) line(r int) *line {
	if a.lines[r] == nil {
		a.lines[r] = a.c.newLine(r, a.attempt)
	}
	return a.lines[r]
}

// end closes the lines, and says to the others that this rank's part is over.
func (a *agreement) end(agreed bool) {
	for _, l := range a.lines {
		if l != nil {
			l.flush()
		}
	}
	switch {
	case agreed:
		a.c.leave(a.attempt, (*tcp.Node).Finish)
		a.c.local.agreed(a.c.me).Store(uint64(a.attempt) << 1)
	case a.End == agree.GaveUp: // not of a rank that is lost: the others go on without it
		a.c.leave(a.attempt, (*tcp.Node).Quit)
		a.c.local.agreed(a.c.me).Store(uint64(a.attempt)<<1 | gaveUp)
		a.drop() // nobody has decided on it
	}
	for _, l := range a.lines {
		if l != nil {
			l.close()
		}
	}
}
