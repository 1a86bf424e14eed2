package shrink

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/agree"
	"github.com/goccl/goccl/internal/backoff"
	"github.com/goccl/goccl/internal/lived"
)

// The ranks agree on which of them are alive. Package agree has what they say to each other, and why that ends with one
// membership. Here is what agree knows nothing of: which ranks are gone, how notices travel, and deadlines.
//
// The failure detector says which ranks are gone (death words, pulses, beats), and so does the
// connection to a rank, where what it shows is true for all: see line. Messages go over pipes
// inside a host and over fresh TCP connections to the lead from other hosts, so nothing depends on
// the dead, nor on the connections of the failed Comm. The cost is three round trips and one
// connection for each rank on another host than the lead's, closed at the end. What a host makes
// for the Comm to come, its ranks find in the host's memory: see make.

// Agreement is this rank's part in one Shrink.
type Agreement struct {
	Party   *agree.Party
	c       *Shrinker
	Attempt uint32
	Rank    int
	limit   context.Context // ends with the time that it may take
	beaten  time.Time       // when this rank last said that it is alive
	lines   []*line
	waits   waits
	quit    map[int]func() bool // that have given up: whether the lead has had the time to say why
	came    bool                // the lead has said something
	why     *call.Fault         // why another gave up
	made    uint64              // the memory that this rank has made for the proposal
	madeFor int                 // ranks
}

// Shrinker makes this rank's part in the Shrinks of its Comm.
type Shrinker struct {
	rank     *plane.Member
	links    *links.Links
	Attempts uint32
	talks    map[int]*line // inside this host: a pipe is made once
	flat     int           // the most ranks that speak with a lead themselves
}

// Init readies the Shrinks of a rank.
func (c *Shrinker) Init(m *plane.Member, l *links.Links) { c.rank, c.links, c.flat = m, l, flat }

// Agree agrees with the other ranks on which of them are alive.
func (c *Shrinker) Agree(ctx context.Context) (*Agreement, *call.Fault) {
	c.Attempts++
	a := &Agreement{c: c, Attempt: c.Attempts, Rank: c.rank.Group.Rank(), lines: make([]*line, c.rank.Group.Size()),
		quit:  map[int]func() bool{},
		waits: waits{heard: time.Now(), rest: backoff.Sleep{First: agreeNapMin, Most: agreeNapMax}}}
	a.Party = agree.New(c.rank.Group.Rank(), c.rank.Group.Size(),
		agree.Asks{Make: a.make, HasEnded: a.hasEnded, HasLeft: a.hasLeft, Tree: c.tree()})
	var end context.CancelFunc
	a.limit, end = limited(c.rank.Site.Job.Background(), c.rank.Group.Timeout())
	defer end()
	f := a.run(ctx)
	a.end(f == nil)
	return a, f
}

// limited is ctx for what may take so long, if d is more than 0.
func limited(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if d <= 0 {
		return context.WithCancel(ctx)
	}
	return lived.Within(ctx, d)
}

// run returns once all living ranks know the decision.
func (a *Agreement) run(ctx context.Context) *call.Fault {
	defer a.c.rank.Unpark()
	defer context.AfterFunc(ctx, a.c.rank.WakeCall)()
	for {
		if a.isDue() || !a.hearNext() && a.waits.slept && time.Since(a.waits.looked) >= lookEvery {
			gone := a.look()
			if f := a.trouble(); f != nil {
				return f
			}
			a.hear() // also what ranks have said that are gone by now
			a.Party.Look(func(r int) bool { return gone[r] })
		}
		a.send()
		if a.Party.End == agree.Open {
			if f := a.wait(ctx); f != nil {
				return f
			}
		}
		switch a.Party.End {
		case agree.Agreed:
			return nil
		case agree.Out:
			return call.NewFault(call.RankLost, a.Rank, "the others have given this rank up")
		case agree.GaveUp:
			switch {
			case a.Party.Failed != nil:
				return a.giveUp(call.NewFault(call.Backend, a.Rank, "%w", a.Party.Failed))
			case a.why == nil:
				return a.giveUp(call.NewFault(call.Canceled, a.Party.Quitter, "rank %d gave up", a.Party.Quitter))
			case a.Party.Leads() || a.Party.Relays():
				return a.giveUp(a.why)
			}
			return a.why
		}
	}
}

// look finds out which ranks are gone, and tells the Party of those that have come to their end, this rank among them.
func (a *Agreement) look() []bool {
	c := a.c
	c.rank.Site.Scan()
	gone := make([]bool, len(a.lines))
	a.waits.looks++
	a.waits.looked, a.waits.slept = time.Now(), false
	a.waits.losses = c.rank.Site.Job.LostOf(&c.rank.Group, gone)
	var over []int
	for r, lost := range gone {
		if l := a.lines[r]; l != nil {
			l.settle()
		}
		switch {
		case r == a.Rank:
			gone[r] = false // see below
		case lost:
			gone[r] = !inject.Wrong("shrink.lost")
		case c.rank.Group.IsHere(r):
			l := c.rank.Group.Topology().Local(r)
			closed := c.rank.Share.Local.State(l).Load() != region.StateOpen // looked at before what it has done
			switch word := c.rank.Share.Local.Agreed(l).Load(); {
			case word == uint64(a.Attempt)<<1:
				over = append(over, r)
			case closed:
				gone[r] = true
			case word > uint64(a.Attempt)<<1:
				a.quitted(r)
			}
		case a.lines[r] == nil:
		case a.lines[r].far.done:
			over = append(over, r)
		case a.lines[r].far.quit:
			a.quitted(r)
		default:
			gone[r] = a.lines[r].far.gone // it has refused: that it is said to have left is not enough, see Site.KnownLeft
		}
	}
	// Ranks that have decided without this rank, or closed the Comm since, heard before that this rank is lost.
	if plane.CatchUp(c.rank.Site); c.rank.Site.Job.IsLost(c.rank.Group.World(a.Rank)) {
		a.Party.Lost()
	}
	for _, r := range over {
		a.hearFrom(r) // a lead has said so before; one that only vanished would have each rank after it lead in turn
		a.Party.Over(r)
	}
	return gone
}

// hasEnded reports whether rank r, which is gone, has certainly ended, or closed the Comm, so that
// it is in no Shrink of it.
func (a *Agreement) hasEnded(r int) bool {
	c := a.c.rank
	switch w := c.Group.World(r); {
	case c.Site.Job.IsLost(w):
		return c.Site.Job.HasEnded(w)
	case c.Group.IsHere(r):
		return c.Share.Local.State(c.Group.Topology().Local(r)).Load() != region.StateOpen
	}
	return a.lines[r] != nil && a.lines[r].far.gone && plane.IsCertain(c.Site, c.Group.World(r))
}

// hasLeft reports whether rank r, which is gone, has closed the Comm, as only those see that speak
// with it. Whether it certainly has is what hasEnded says.
func (a *Agreement) hasLeft(r int) bool {
	c := a.c.rank
	return !c.Site.Job.IsLost(c.Group.World(r)) && (a.c.rank.Group.IsHere(r) || a.lines[r] != nil && a.lines[r].far.gone)
}

// trouble says that this rank cannot connect with the others. It is no member then, and says so.
func (a *Agreement) trouble() *call.Fault {
	for _, l := range a.lines {
		if l == nil || l.via.trouble == nil {
			continue
		}
		a.IsLost(fmt.Errorf("it cannot connect: %w", l.via.trouble))
		return call.NewFault(call.Backend, a.Rank, "cannot connect: %w", l.via.trouble)
	}
	return nil
}

// IsLost tells all ranks of the job that this one counts as lost, and why.
func (a *Agreement) IsLost(why error) {
	w := a.c.rank.Group.World(a.Rank)
	a.c.rank.Site.Lost(w, why)
	for over := lived.For(2 * plane.SettleFor); !a.c.rank.Site.Job.IsLost(w) && !over(); a.c.rank.Site.Scan() {
		time.Sleep(agreeNapMax)
	}
}

// hear reads the messages of all ranks for which this rank waits.
func (a *Agreement) hear() {
	for _, r := range a.Party.Hears() {
		a.hearFrom(r)
	}
}

// hearNext reads the messages of the first rank for which this rank waits, then of the rank that is
// first by then, and reports whether a message has come.
func (a *Agreement) hearNext() (heard bool) {
	for r := a.Party.First(); r >= 0 && a.hearFrom(r); r = a.Party.First() {
		heard = true
	}
	if up := a.Party.Up(); up >= 0 && a.Party.First() != up { // it waits for those below
		heard = a.hearFrom(up) || heard
	}
	return heard
}

// hearFrom reads what has come from rank r, as long as this rank waits for it, and reports whether anything has.
func (a *Agreement) hearFrom(r int) (heard bool) {
	l := a.line(r)
	for a.Party.Waits(r) {
		a.waits.hears++
		n, ok := l.hear()
		if l.via.renewed {
			l.via.renewed = false
			a.Party.Renewed(r)
		}
		if !ok {
			break
		}
		heard = true
		a.waits.heard = time.Now()
		a.waits.rest.Reset()
		a.waits.slept = false
		if n.attempt != a.Attempt {
			continue
		}
		switch n.says.Kind {
		case agree.Quit:
			a.report()
			if r == a.Party.Up() {
				a.why = a.given(n, r, nil)
			} else {
				a.why = a.given(n, r, a.Party.Missing())
			}
		case agree.Decide:
			inject.At("shrink.decided")
		}
		a.came = a.came || r == a.Party.Up()
		a.Party.Hear(r, n.says)
		a.send()
	}
	return heard
}

// send sends what the Party has to say. That it gives up is said with the reason: see giveUp. What
// a lead says to all members is put into bytes once.
func (a *Agreement) send() {
	var last agree.Notice
	var wire []byte
	for i := range a.Party.Post {
		m := &a.Party.Post[i]
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
		if wire == nil || !m.Same(&last) {
			last = m.Notice
			n := notice{says: last, attempt: a.Attempt}
			wire = n.append(nil)
		}
		a.put(a.line(m.To), m.Kind, wire)
	}
	a.Party.Post = a.Party.Post[:0]
}

// outOfTime waits a moment for the lead, which has come, to say which ranks have not.
func (a *Agreement) outOfTime(l *line, f *call.Fault) *call.Fault {
	for range 100 {
		if n, ok := l.hear(); ok && n.attempt == a.Attempt && n.says.Kind == agree.Quit {
			return &call.Fault{Code: call.Timeout, Peer: a.given(n, l.peer, nil).Peer, Missing: numbers[int](n.says.Ranks),
				Err: f.Err}
		}
		l.push()
		time.Sleep(agreeNapMax)
	}
	f.Peer, f.Missing = -1, nil
	return f
}

// giveUp tells the others that it came to nothing, and why.
func (a *Agreement) giveUp(f *call.Fault) *call.Fault {
	says := agree.Notice{Kind: agree.Quit, Ballot: uint64(f.Peer + 1), Ranks: numbers[int32](f.Missing)}
	for _, l := range a.lines {
		if l != nil {
			a.say(l, notice{says: says, code: f.Code})
		}
	}
	return f
}

// given is the fault of an agreement that rank r has given up. Where it ran out of time,
// those that the lead misses are to blame, and not the lead.
func (a *Agreement) given(n notice, r int, missing []int) *call.Fault {
	f := &call.Fault{Code: n.code, Peer: int(uint32(n.says.Ballot)) - 1, Missing: numbers[int](n.says.Ranks)}
	if f.Code == call.Timeout && missing != nil {
		f.Missing = slices.DeleteFunc(slices.Clone(missing), func(m int) bool { return m == r })
		f.Peer = -1
	}
	if len(f.Missing) > 0 {
		f.Peer = f.Missing[0]
	}
	if f.Peer >= len(a.lines) || f.Peer < 0 && f.Code != call.Timeout {
		f.Peer = r
	}
	f.Err = fmt.Errorf("rank %d gave up", r)
	return f
}

// expired says that the time of this Shrink is over.
func (a *Agreement) expired(ctx context.Context) *call.Fault {
	if a.c.rank.Fate.Interrupted() {
		return call.NewFault(call.Closed, a.Rank, "")
	}
	if err := ctx.Err(); err != nil {
		return call.CtxFault(err, a.Rank, a.Party.Missing())
	}
	if err := a.limit.Err(); err != nil {
		f := call.CtxFault(err, a.Rank, a.Party.Missing())
		f.Err = fmt.Errorf("not done after %v", a.c.rank.Group.Timeout())
		return f
	}
	return nil
}

// gaveUp marks the word of a rank whose last Shrink came to nothing.
const gaveUp = 1

// quitted notes that rank r has given this agreement up. The lead gets a moment to say why.
func (a *Agreement) quitted(r int) {
	if _, ok := a.quit[r]; !ok {
		a.quit[r] = lived.For(quitAfter)
	}
}

// offered finds ranks of other hosts that are in the next agreement already.
func (a *Agreement) offered() {
	c := a.c
	for r := range a.lines {
		if r != a.Rank && !c.rank.Group.IsHere(r) &&
			c.rank.Site.Job.Net.TCP.Offered(tcp.MakeKey(c.agreementID(a.Attempt+1), linesOf, uint32(c.rank.Group.Rank()),
				uint32(r)), uint32(c.rank.Group.Rank())) {
			a.quitted(r)
		}
	}
}

// line is the line to rank r.
func (a *Agreement) line(r int) *line {
	if a.lines[r] == nil {
		a.lines[r] = a.c.newLine(r, a.Attempt)
		a.waits.heard = time.Now()     // from whom it waits for now
		if len(a.lines[r].queue) > 0 { // of the last agreement
			a.waits.unsent = append(a.waits.unsent, a.lines[r])
		}
	}
	return a.lines[r]
}

// end closes the lines, and says to the others that this rank's part is over.
func (a *Agreement) end(agreed bool) {
	for _, l := range a.lines {
		if l != nil {
			l.flush()
			l.ring()
		}
	}
	defer a.c.rank.Wake() // those that wait for this rank
	switch {
	case agreed:
		a.c.Leave(a.Attempt, (*tcp.Node).Finish)
		a.c.rank.Share.Local.Agreed(a.c.rank.Share.Me).Store(uint64(a.Attempt) << 1)
	case a.Party.End == agree.GaveUp: // not of a rank that is lost: the others go on without it
		a.c.Leave(a.Attempt, (*tcp.Node).Quit)
		a.c.rank.Share.Local.Agreed(a.c.rank.Share.Me).Store(uint64(a.Attempt)<<1 | gaveUp)
		a.drop() // nobody has decided on it
	}
	for _, l := range a.lines {
		if l != nil {
			l.close()
		}
	}
}

// make makes the memory for this host's part of the proposal, if this rank is the first of its host
// in it, and says in the memory of the host where: before this rank says that it is ready, and so
// before any rank can come to need it.
func (a *Agreement) make(ballot uint64, ranks []int32) error {
	a.drop()
	first, locals := a.onHost(ranks)
	if first != a.Rank {
		return nil
	}
	off, err := a.c.rank.Site.Here.Host.Alloc(region.Bytes(locals))
	if err != nil {
		return err
	}
	a.made, a.madeFor = off, locals
	a.c.rank.Share.Local.SetDraft(a.c.rank.Share.Me, region.Draft{Attempt: a.Attempt, Ballot: ballot, Off: off})
	return nil
}

// onHost is the first of some ranks that is on this rank's host, -1 if none is, and how many are.
func (a *Agreement) onHost(ranks []int32) (first, locals int) {
	first = -1
	for _, r := range ranks {
		if a.c.rank.Group.IsHere(int(r)) {
			if first < 0 {
				first = int(r)
			}
			locals++
		}
	}
	return first, locals
}

// Memory is where the memory for this host's part of what is decided lies. There is none if this
// rank was given up meanwhile, and the others have gone on to their next Shrink.
func (a *Agreement) Memory() (off uint64, ok bool) {
	first, _ := a.onHost(a.Party.Ranks)
	if first < 0 {
		return 0, false
	}
	d := a.c.rank.Share.Local.Draft(a.c.rank.Group.Topology().Local(first))
	return d.Off, d.Attempt == a.Attempt && d.Ballot == a.Party.Ballot() && d.Off != 0
}

// IsLeftBehind reports whether the ranks that have agreed seem to be those that the others have
// given up, and not the other way round: this process has stood still, and has found others gone
// when it came back, which may have gone on without it, and ended; and of those that may have done
// so too few are here. Others that still run say so themselves.
func (a *Agreement) IsLeftBehind() bool {
	var all, left, ended []int
	for _, r := range a.Party.Ranks {
		left = append(left, int(r))
	}
	for _, r := range a.Party.Ended {
		ended = append(ended, int(r))
	}
	doubted := false
	for r := range a.lines {
		all = append(all, r)
		doubted = doubted || !slices.Contains(left, r) && !slices.Contains(ended, r) &&
			a.c.rank.Site.Near.MayBeOut(a.c.rank.Group.World(r))
	}
	return doubted && !agree.Majority(all, left, ended)
}

// drop frees the memory of a proposal that came to nothing.
func (a *Agreement) drop() {
	if a.made != 0 {
		a.c.rank.Share.Local.SetDraft(a.c.rank.Share.Me, region.Draft{})
		a.c.rank.Site.Here.Host.Forget(a.made, region.Bytes(a.madeFor)) // others may have heard of it
		a.made = 0
	}
}
