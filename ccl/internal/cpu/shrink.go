package cpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// Shrink agrees with the other ranks on who is alive, and makes the Comm of those. It
// is a three-phase commit (Skeen, "Nonblocking Commit Protocols", 1981) under the
// lowest rank that is not gone, the lead:
//
//	members   here     -> lead     I take part
//	lead      propose  -> members  these ranks are alive
//	members   ready    -> lead     I know the proposal; this is my host's memory for it
//	lead      decide   -> members  it is decided
//	members   decided  -> lead     I know the decision
//	lead      done     -> members  all know it: return
//
// Nobody decides before all living ranks are ready, and nobody returns before all have
// decided. So where the lead dies, the next one need only ask: has anybody decided, it
// is decided; has nobody, it was not, and the new lead proposes afresh. A member that
// dies before the decision makes the lead propose anew without it; one that dies after
// is a member of the new Comm, which then begins failed, on all ranks alike.
//
// Who is gone is the failure detector's to say (death words, pulses, beats), and where
// it is silent, the connection to that rank: see line. Messages go over pipes inside a
// host and over fresh TCP connections to the lead from other hosts, so nothing depends
// on the dead, nor on the connections of the failed Comm. The cost is three round trips
// and one connection for each rank on another host than the lead's, closed at the end.

// The kinds of notices.
const (
	sayHere    = iota + 1 // I take part, and know of no decision
	sayPropose            // ranks are the members
	sayReady              // offs[0] is the memory that I made for my host, 0: another does
	sayDecide             // ranks, and offs, the memory of each host
	sayDecided            // I know it: ranks, offs
	sayDone               // all know it
	sayQuit               // I give up: code, ranks: who has not come
	sayAlive              // nothing new
	sayEnd
)

// agreement is this rank's part in one Shrink.
type agreement struct {
	c       *Comm
	attempt uint32
	rank    int
	began   time.Time
	beaten  time.Time // when this rank last said that it is alive
	gone    []bool    // ranks that have died or left
	lines   []*line
	said    []notice // the last answer of each rank to this lead
	nap     time.Duration
	quitter int       // a rank that has given up
	quitAt  time.Time // and when that was seen
	out     bool      // the others have come to their end without this rank
	trouble error     // this rank cannot connect

	bound   bool // by a proposal: a rank that is ready must wait for the decision
	decided bool
	ballot  uint64 // of the proposal: round<<32 | lead
	ranks   []int32
	offs    []uint64
	made    uint64 // the memory that this rank has made for the proposal
}

// Shrink makes the Comm of the ranks that are alive. All of them must call it.
func (c *Comm) Shrink(ctx context.Context, opt Options) (*Comm, *Fault) {
	c.shrinks++
	a := &agreement{c: c, attempt: c.shrinks, rank: c.rank, began: time.Now(), ballot: uint64(c.rank),
		gone: make([]bool, c.Size()), lines: make([]*line, c.Size()), said: make([]notice, c.Size())}
	f := a.run(ctx)
	a.end(f == nil)
	if f != nil {
		return nil, f
	}
	return a.comm(opt)
}

// run returns once all living ranks know the decision.
func (a *agreement) run(ctx context.Context) *Fault {
	for {
		a.look()
		if f := a.isOut(); f != nil {
			return f
		}
		lead := slices.Index(a.gone, false)
		var ended bool
		var f *Fault
		if lead == a.rank {
			ended, f = a.lead(ctx)
		} else {
			ended, f = a.follow(ctx, lead)
		}
		if ended || f != nil {
			return f
		}
	}
}

// lead runs the agreement. It is not ended if this rank must follow another after all.
func (a *agreement) lead(ctx context.Context) (bool, *Fault) {
	clear(a.said)
	for !a.decided {
		if f := a.gather(ctx); f != nil {
			return true, f
		}
		if a.decided { // under an earlier lead
			break
		}
		ready, f := a.propose(ctx)
		if f != nil {
			return true, f
		}
		a.decided = ready
	}
	inject.At("shrink.decide")
	if f := a.tell(ctx, notice{kind: sayDecide, ballot: a.ballot, ranks: a.ranks, offs: a.offs}, sayDecided); f != nil {
		return true, f
	}
	inject.At("shrink.done")
	for r := range a.gone {
		if l := a.lines[r]; l != nil && !a.gone[r] {
			l.say(notice{kind: sayDone, ballot: a.ballot})
		}
	}
	return true, nil
}

// gather waits until every rank that is not gone has said what it knows.
func (a *agreement) gather(ctx context.Context) *Fault {
	for {
		missing := a.missing(func(n *notice) bool { return n.kind != 0 })
		for r := range a.said {
			if n := &a.said[r]; n.kind == sayDecided && !a.decided {
				a.decided, a.ballot, a.ranks, a.offs = true, n.ballot, n.ranks, n.offs
			}
		}
		if len(missing) == 0 {
			return a.isOut() // nobody may go on alone who has been given up
		}
		if f := a.turn(ctx, missing); f != nil {
			return f
		}
	}
}

// propose is true once all of the living are ready; false if one has died meanwhile.
func (a *agreement) propose(ctx context.Context) (bool, *Fault) {
	a.drop()
	a.ballot = (a.ballot>>32+1)<<32 | uint64(a.rank)
	a.ranks = nil
	for r, gone := range a.gone {
		if !gone {
			a.ranks = append(a.ranks, int32(r))
		}
	}
	if f := a.make(); f != nil {
		return false, a.quit(f)
	}
	inject.At("shrink.propose")
	if f := a.tell(ctx, notice{kind: sayPropose, ballot: a.ballot, ranks: a.ranks}, sayReady); f != nil {
		return false, f
	}
	a.offs = nil
	for _, r := range a.ranks {
		switch {
		case a.gone[r]:
			return false, nil
		case int(r) == a.rank:
			a.offs = append(a.offs, a.made)
		case a.said[r].offs[0] != 0:
			a.offs = append(a.offs, a.said[r].offs[0])
		}
	}
	return true, nil
}

// tell sends n to the living members, and waits for the answer of each.
func (a *agreement) tell(ctx context.Context, n notice, answer byte) *Fault {
	for _, r := range a.ranks {
		if int(r) != a.rank && !a.gone[r] {
			a.said[r] = notice{}
			l := a.line(int(r))
			l.renewed = false
			l.say(n)
		}
	}
	for {
		missing := a.missing(func(m *notice) bool { return m.kind == answer && m.ballot == a.ballot })
		if len(missing) == 0 {
			return a.isOut() // nobody may go on alone who has been given up
		}
		for _, r := range missing {
			if l := a.lines[r]; l != nil && l.renewed { // what was on its way is lost
				l.renewed = false
				l.say(n)
			}
		}
		if f := a.turn(ctx, missing); f != nil {
			return f
		}
	}
}

// missing lists the living whose last answer will not do.
func (a *agreement) missing(will func(*notice) bool) (list []int) {
	for r := range a.gone {
		if r != a.rank && !a.gone[r] && !will(&a.said[r]) {
			if a.ranks != nil && (a.bound || a.decided) && !slices.Contains(a.ranks, int32(r)) {
				continue
			}
			list = append(list, r)
		}
	}
	return list
}

// turn reads what has come, and waits a moment for more.
func (a *agreement) turn(ctx context.Context, missing []int) *Fault {
	if f := a.wait(ctx, missing); f != nil {
		return f
	}
	a.look()
	for _, r := range missing {
		l := a.line(r)
		for {
			n, ok := l.hear()
			if !ok {
				break
			}
			a.nap = 0
			switch {
			case n.attempt != a.attempt || n.kind == sayAlive:
			case n.kind == sayQuit:
				return a.quit(a.given(n, r, missing))
			case n.kind == sayHere || n.kind == sayReady || n.kind == sayDecided:
				if n.kind == sayReady && len(n.offs) == 0 {
					continue
				}
				a.said[r] = n
				if n.kind == sayHere { // or the other would not know that the lead has come
					l.say(notice{kind: sayAlive})
				}
			}
		}
	}
	return nil
}

// follow does what lead says, until that is gone.
func (a *agreement) follow(ctx context.Context, lead int) (ended bool, f *Fault) {
	l := a.line(lead)
	here := func() {
		n := notice{kind: sayHere}
		if a.decided {
			n = notice{kind: sayDecided, ballot: a.ballot, ranks: a.ranks, offs: a.offs}
		}
		l.say(n)
	}
	here()
	came := false
	for {
		a.look()
		gone := a.gone[lead] // looked at before the last of its notices
		for {
			n, ok := l.hear()
			if !ok {
				break
			}
			a.nap = 0
			if n.attempt != a.attempt {
				continue
			}
			came = true
			switch n.kind {
			case sayPropose:
				if f := a.accept(n); f != nil {
					return true, a.quit(f)
				}
				inject.At("shrink.ready")
				l.say(notice{kind: sayReady, ballot: n.ballot, offs: []uint64{a.made}})
			case sayDecide:
				inject.At("shrink.decided")
				a.decided, a.ballot, a.ranks, a.offs = true, n.ballot, n.ranks, n.offs
				l.say(notice{kind: sayDecided, ballot: n.ballot})
			case sayDone:
				return true, nil
			case sayQuit:
				return true, a.given(n, lead, nil)
			}
		}
		if gone {
			return false, nil
		}
		if l.renewed {
			l.renewed = false
			here()
		}
		if f := a.wait(ctx, []int{lead}); f != nil {
			if f.Code == Timeout && came {
				f = a.outOfTime(l, f)
			}
			return true, f
		}
	}
}

// outOfTime waits a moment for the lead, which has come, to say who has not.
func (a *agreement) outOfTime(l *line, f *Fault) *Fault {
	for range 100 {
		if n, ok := l.hear(); ok && n.attempt == a.attempt && n.kind == sayQuit {
			return &Fault{Code: Timeout, Peer: a.given(n, l.peer, nil).Peer, Missing: n.missing(), Err: f.Err}
		}
		l.push()
		time.Sleep(agreeNapMax)
	}
	f.Peer, f.Missing = -1, nil
	return f
}

// accept takes the proposal n.
func (a *agreement) accept(n notice) *Fault {
	if !slices.Contains(n.ranks, int32(a.rank)) {
		return fault(RankLost, a.rank, "the others have given this rank up")
	}
	if a.bound && a.ballot == n.ballot { // said twice
		return nil
	}
	a.drop()
	a.ballot, a.ranks, a.bound = n.ballot, n.ranks, true
	return a.make()
}

// quit tells the others that it came to nothing, and why.
func (a *agreement) quit(f *Fault) *Fault {
	for _, l := range a.lines {
		if l != nil {
			l.say(notice{kind: sayQuit, code: f.Code, ballot: uint64(a.c.blamed(f) + 1), ranks: ranks32(f.Missing)})
		}
	}
	return f
}

// given is the fault of an agreement that rank r has given up. Where it ran out of time,
// those that the lead misses are to blame, and not the lead.
func (a *agreement) given(n notice, r int, missing []int) *Fault {
	f := &Fault{Code: n.code, Peer: int(uint32(n.ballot)) - 1, Missing: n.missing()}
	if f.Code == Timeout && missing != nil {
		f.Missing = slices.DeleteFunc(missing, func(m int) bool { return m == r })
		f.Peer = r
	}
	if len(f.Missing) > 0 {
		f.Peer = f.Missing[0]
	}
	if f.Peer < 0 || f.Peer >= len(a.gone) {
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
func (a *agreement) wait(ctx context.Context, missing []int) *Fault {
	if f := a.isOut(); f != nil {
		return f
	}
	if !a.bound && !a.decided {
		t := a.c.opt.Timeout
		switch err := ctx.Err(); {
		case a.c.closing.Load():
			return a.quit(fault(Closed, a.rank, ""))
		case err != nil:
			return a.quit(ctxFault(err, missing))
		case t > 0 && time.Since(a.began) > t:
			f := ctxFault(context.DeadlineExceeded, missing)
			f.Err = fmt.Errorf("not done after %v", t)
			return a.quit(f)
		case !a.quitAt.IsZero() && time.Since(a.quitAt) > quitAfter:
			return a.quit(fault(Canceled, a.quitter, "rank %d gave up", a.quitter))
		}
	}
	if now := time.Now(); now.Sub(a.beaten) > beatTicks*tick {
		a.beaten = now
		if a.c.topo.Nodes() > 1 {
			a.offered()
		}
		for r, l := range a.lines {
			if l != nil && !a.gone[r] && !l.inside() && len(l.queue) == 0 {
				l.say(notice{kind: sayAlive})
			}
		}
	}
	for r, l := range a.lines {
		if l != nil && !a.gone[r] {
			l.push()
		}
	}
	a.nap = max(agreeNapMin, min(2*a.nap, agreeNapMax))
	time.Sleep(a.nap)
	return nil
}

// look finds out who is gone.
func (a *agreement) look() {
	c := a.c
	c.site.scan()
	for r, gone := range a.gone {
		switch {
		case gone || r == a.rank:
		case c.site.isLost(c.members.world(r)):
			a.gone[r] = true
		case c.topo.Node(r) == c.topo.Node(c.rank):
			l := c.topo.Local(r)
			closed := c.local.state(l).Load() != stateOpen // looked at before what it has done
			switch word := c.local.agreed(l).Load(); {
			case word == uint64(a.attempt)<<1:
				a.finished(r)
			case closed:
				a.gone[r] = true
			case word > uint64(a.attempt)<<1:
				a.quitted(r)
			}
		case a.lines[r] == nil:
		case a.lines[r].done:
			a.finished(r)
		default:
			a.gone[r] = a.lines[r].gone
			if a.trouble == nil {
				a.trouble = a.lines[r].trouble
			}
		}
	}
}

// finished notes that rank r has come to the end of this agreement. Nobody does before all members know the decision. So
// where this rank does not know it, it is no member: the others have given it up.
func (a *agreement) finished(r int) {
	a.gone[r] = true
	if !a.decided {
		a.out = true
	}
}

// isOut says that this rank cannot be a member: the others have given it up, or it cannot connect with them, and says so.
func (a *agreement) isOut() *Fault {
	w := a.c.members.world(a.rank)
	switch {
	case a.out || a.c.site.isLost(w):
		return fault(RankLost, a.rank, "the others have given this rank up")
	case a.trouble != nil:
		a.c.site.lost(w, fmt.Errorf("it cannot connect: %w", a.trouble))
		for until := time.Now().Add(2 * settleFor); !a.c.site.isLost(w) && time.Now().Before(until); a.c.site.scan() {
			time.Sleep(agreeNapMax)
		}
		return fault(Backend, a.rank, "cannot connect: %w", a.trouble)
	}
	return nil
}

// gaveUp marks the word of a rank whose last Shrink came to nothing.
const gaveUp = 1

// quitted notes that rank r has given this agreement up. Then it can come to nothing only.
func (a *agreement) quitted(r int) {
	if a.quitAt.IsZero() {
		a.quitter, a.quitAt = r, time.Now()
	}
}

// offered finds a rank of another host that is in the next agreement already.
func (a *agreement) offered() {
	c := a.c
	for r := range a.gone {
		if r != a.rank && c.topo.Node(r) != c.topo.Node(c.rank) &&
			c.site.tcp.Offered(tcp.MakeKey(c.agreementID(a.attempt+1), linesOf, uint32(c.rank), uint32(r)), uint32(c.rank)) {
			a.quitted(r)
			return
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
	word := uint64(a.attempt) << 1
	if !agreed {
		word |= gaveUp
	} else {
		a.c.forgetAgreement(a.attempt, true) // else who comes late must not take this rank for gone, and go on alone
	}
	a.c.local.agreed(a.c.me).Store(word)
	for _, l := range a.lines {
		if l != nil {
			l.close()
		}
	}
}
