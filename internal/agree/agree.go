// Package agree is the agreement of ranks on who is alive and goes on: what Shrink is made
// of, without connections and clocks. It is a three-phase commit (Skeen, "Nonblocking Commit
// Protocols", 1981) under the lowest rank that is not gone, the lead:
//
//	members   here     -> lead     I take part
//	lead      propose  -> members  these ranks are alive
//	members   ready    -> lead     I know the proposal, and have made what it needs
//	lead      decide   -> members  it is decided
//	members   decided  -> lead     I know the decision
//	lead      done     -> members  all know it: return
//
// Nobody decides before all living ranks are ready, and nobody returns before all have
// decided. So where the lead dies, the next one need only ask: has anybody decided, it
// is decided; has nobody, it was not, and the new lead proposes afresh. A member that
// dies before the decision makes the lead propose anew without it; one that dies after
// is a member all the same.
//
// A rank that is ready waits for the decision whatever its own deadline, since others may
// know it. That ends: a lead proposes only when all living ranks have come, so each of them
// answers, gives up, which it may only while it is not ready, so that nothing was decided, or is
// lost, which the failure detector says.
//
// A rank that has come to the end of an agreement while another does not know the decision has
// decided without that one: the others have given it up, and it must not go on alone.
//
// test/model explores all that can happen to these functions.
package agree

import "slices"

// Kind is what a Notice says.
type Kind byte

// The kinds of notices.
const (
	Here    Kind = iota + 1 // I take part, and know of no decision
	Propose                 // Ranks are the members
	Ready                   // I have made what the proposal needs of me
	Decide                  // Ranks and Ended
	Decided                 // I know it: Ranks, Ended
	Done                    // all know it
	Quit                    // I give up
	Alive                   // nothing new
	kindEnd
)

// Valid reports whether there is such a kind.
func (k Kind) Valid() bool { return k > 0 && k < kindEnd }

// Notice is a message of an agreement.
type Notice struct {
	Kind   Kind
	Ballot uint64 // of the proposal: round<<32 | lead
	Ranks  []int32
	Ended  []int32 // of the ranks that are no members: those whose end is certain
}

// Same reports whether n says what o does, as far as a glance tells: with the very same lists.
func (n *Notice) Same(o *Notice) bool {
	return n.Kind == o.Kind && n.Ballot == o.Ballot && same(n.Ranks, o.Ranks) && same(n.Ended, o.Ended)
}

func same(a, b []int32) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Letter is a Notice on its way to a rank.
type Letter struct {
	To int
	Notice
}

// End is how an agreement has ended for a rank.
type End byte

// The ends.
const (
	Open   End = iota
	Agreed     // Ranks are decided, and all know it
	Out        // the others have given this rank up
	GaveUp     // it comes to nothing, for all
)

// phase is what a lead does.
type phase byte

const (
	following phase = iota
	gathering       // it asks what the others know
	proposing
	telling // what is decided
)

// Party is a rank's part in one agreement. Its methods are called by one goroutine. They do nothing but
// change it and add to Post what is to be sent.
type Party struct {
	Me      int
	End     End
	Quitter int // whose giving up ended it, where End is GaveUp: this rank's own, if Make failed
	Failed  error
	Post    []Letter

	Decided bool
	Ranks   []int32 // of the proposal, or the decision
	Ended   []int32 // of the decision: the other ranks whose end was certain to the lead

	// Make makes what this rank is to have for the proposal of that ballot before it says that it is
	// ready, and takes back what it made before. So it is there once the proposal is decided.
	Make func(ballot uint64, ranks []int32) error
	// HasEnded reports whether it is certain that rank r, which is gone, has ended: it is not only silent or out of reach. It
	// may be nil: then nothing is certain.
	HasEnded func(r int) bool

	phase  phase
	bound  bool // by a proposal: this rank is ready, so others may have decided
	gone   []bool
	lead   int
	ballot uint64
	made   uint64   // the ballot of the last proposal for which Make was called
	said   []Notice // the last answer of each rank to this lead; nil: it has not led yet
	heard  int      // of a lead: it waits for no rank below this one in this phase
}

// New is rank me's part, of size ranks. Look begins it.
func New(me, size int, make_ func(ballot uint64, ranks []int32) error) *Party {
	return &Party{Me: me, Quitter: -1, Make: make_, gone: make([]bool, size), lead: -1, ballot: uint64(me)}
}

// Lead is the rank that this one follows, or itself.
func (p *Party) Lead() int { return p.lead }

// Leads reports whether this rank is the lead.
func (p *Party) Leads() bool { return p.lead == p.Me }

// MayQuit reports whether this rank may end the agreement for a reason of its own: nobody can have decided.
func (p *Party) MayQuit() bool {
	return p.End == Open && !p.Decided && (!p.bound || p.phase == proposing)
}

// Give ends the agreement, which MayQuit allows, and tells those that wait for this rank.
func (p *Party) Give() { p.quit(p.Me) }

func (p *Party) quit(who int) {
	p.End, p.Quitter = GaveUp, who
	for r := range p.gone {
		if r != p.Me && !p.gone[r] && (p.Leads() || r == p.lead) {
			p.post(r, Notice{Kind: Quit})
		}
	}
}

func (p *Party) post(to int, n Notice) { p.Post = append(p.Post, Letter{to, n}) }

// Look says who is gone: those that are lost, have closed the Comm, or have come to their end.
func (p *Party) Look(gone func(r int) bool) {
	for r := range p.gone {
		if r != p.Me && !p.gone[r] {
			p.gone[r] = gone(r)
		}
	}
	p.advance()
}

// Over says that rank r has come to the end of the agreement, with success. Nobody does before all members know
// the decision.
func (p *Party) Over(r int) {
	if p.End != Open {
		return
	}
	if !p.Decided {
		p.End = Out
		return
	}
	p.gone[r] = true
	p.advance()
}

// Lost says that the others have given this rank up.
func (p *Party) Lost() {
	if p.End == Open {
		p.End = Out
	}
}

// Dropped says that rank r has given the agreement up. It was not ready for a proposal that it is a member of, so nobody
// has decided that. One that is not a member may do what it likes.
func (p *Party) Dropped(r int) {
	if p.End == Open && !p.Decided && !p.gone[r] && (!p.bound || slices.Contains(p.Ranks, int32(r))) {
		p.quit(r)
	}
}

// Missing lists the ranks that this one waits for: what these say is to be heard.
func (p *Party) Missing() (list []int) {
	if p.End != Open || p.lead < 0 {
		return nil
	}
	if !p.Leads() {
		return []int{p.lead}
	}
	for r := range p.gone {
		if p.Waits(r) {
			list = append(list, r)
		}
	}
	return list
}

// First is the first of Missing, -1 if there is none. All calls in a phase take as long together as one look at all ranks.
func (p *Party) First() int {
	switch {
	case p.End != Open || p.lead < 0:
		return -1
	case !p.Leads():
		return p.lead
	}
	for p.heard < len(p.gone) && !p.Waits(p.heard) { // nor will it, in this phase
		p.heard++
	}
	if p.heard == len(p.gone) {
		return -1
	}
	return p.heard
}

// Waits reports whether this rank waits for rank r.
func (p *Party) Waits(r int) bool {
	switch {
	case p.End != Open || p.lead < 0:
		return false
	case !p.Leads():
		return r == p.lead
	}
	return r != p.Me && !p.gone[r] && !p.answered(r)
}

// answered reports whether the last answer of rank r will do in this phase.
func (p *Party) answered(r int) bool {
	n := &p.said[r]
	switch p.phase {
	case proposing:
		return n.Kind == Ready && n.Ballot == p.ballot
	case telling:
		return n.Kind == Decided && n.Ballot == p.ballot || !p.isMember(r)
	}
	return n.Kind != 0
}

// isMember reports whether rank r is one of the proposal, whose ranks are in order.
func (p *Party) isMember(r int) bool {
	_, is := slices.BinarySearch(p.Ranks, int32(r))
	return is
}

// enter begins a phase.
func (p *Party) enter(ph phase) { p.phase, p.heard = ph, 0 }

// Renewed tells p that the connection to rank r broke and is there again, so that messages may be
// lost. This rank tells its lead again what it knows; a lead asks r again unless r has answered.
func (p *Party) Renewed(r int) {
	switch {
	case p.End != Open || p.gone[r]:
	case !p.Leads():
		if r == p.lead {
			p.present()
		}
	case !p.answered(r):
		p.ask(r)
	}
}

// present tells the lead what this rank knows.
func (p *Party) present() {
	n := Notice{Kind: Here}
	if p.Decided {
		n = Notice{Kind: Decided, Ballot: p.ballot, Ranks: p.Ranks, Ended: p.Ended}
	}
	p.post(p.lead, n)
}

// ask says to rank r what it is to answer.
func (p *Party) ask(r int) {
	switch p.phase {
	case proposing:
		p.post(r, Notice{Kind: Propose, Ballot: p.ballot, Ranks: p.Ranks})
	case telling:
		p.post(r, Notice{Kind: Decide, Ballot: p.ballot, Ranks: p.Ranks, Ended: p.Ended})
	}
}

// Hear takes a notice of rank r.
func (p *Party) Hear(r int, n Notice) {
	switch {
	case p.End != Open:
	case p.Leads():
		p.hearMember(r, n)
	case r == p.lead:
		p.hearLead(n)
	}
}

func (p *Party) hearMember(r int, n Notice) {
	switch n.Kind {
	case Quit:
		p.Dropped(r)
		return
	case Here: // the other is to know that the lead has come
		p.post(r, Notice{Kind: Alive})
	case Ready, Decided:
	default:
		return
	}
	p.said[r] = n
	p.heard = min(p.heard, r) // also where it has said something else by now
	p.advance()
}

func (p *Party) hearLead(n Notice) {
	switch n.Kind {
	case Propose:
		if !slices.Contains(n.Ranks, int32(p.Me)) {
			p.End = Out
			return
		}
		if !p.bound || p.ballot != n.Ballot { // else it is said twice
			p.ballot, p.Ranks, p.bound = n.Ballot, n.Ranks, true
			if !p.make() {
				return
			}
		}
		p.post(p.lead, Notice{Kind: Ready, Ballot: n.Ballot})
	case Decide:
		if p.Decided && p.ballot != n.Ballot { // by a lead that does not know that it was given up
			return
		}
		p.decided(&n)
		p.post(p.lead, Notice{Kind: Decided, Ballot: n.Ballot})
	case Done:
		if p.End = Agreed; !p.Decided { // without this rank
			p.End = Out
		}
	case Quit:
		p.Dropped(p.lead)
	}
}

// decided takes in what is decided.
func (p *Party) decided(n *Notice) {
	p.Decided, p.ballot, p.Ranks, p.Ended = true, n.Ballot, n.Ranks, n.Ended
}

// certain lists the ranks that are no members and whose end is certain. The lead alone says so, in its decision: what ranks
// make of it must be the same on all.
func (p *Party) certain() (ended []int32) {
	for r, gone := range p.gone {
		if gone && p.HasEnded != nil && !p.isMember(r) && p.HasEnded(r) {
			ended = append(ended, int32(r))
		}
	}
	return ended
}

// make makes what the proposal needs of this rank.
func (p *Party) make() bool {
	p.made = p.ballot
	if p.Failed = p.Make(p.ballot, p.Ranks); p.Failed != nil {
		p.quit(p.Me)
		return false
	}
	return true
}

// Made is the ballot of the last proposal for which this rank has made what it is to have, 0 if there was none. Once the
// agreement is reached it is Ballot.
func (p *Party) Made() uint64 { return p.made }

// advance goes as far as what is known allows.
func (p *Party) advance() {
	if p.End != Open {
		return
	}
	if lead := p.lowest(); lead != p.lead {
		p.lead = lead
		if !p.Leads() {
			p.present()
			return
		}
		p.enter(gathering)
		p.said = make([]Notice, len(p.gone))
	}
	for p.Leads() && p.End == Open && p.First() < 0 {
		p.next()
	}
}

// lowest is the lowest rank that is not gone.
func (p *Party) lowest() int {
	for r, gone := range p.gone {
		if !gone || r == p.Me {
			return r
		}
	}
	return p.Me
}

// next begins the phase after one in which all have answered.
func (p *Party) next() {
	switch p.phase {
	case gathering:
		for r := range p.said {
			switch n := &p.said[r]; {
			case n.Kind != Decided:
			case !slices.Contains(n.Ranks, int32(p.Me)): // without this rank, which may know another decision
				p.End = Out
				return
			case !p.Decided: // under an earlier lead
				p.decided(n)
			}
		}
		if p.Decided {
			p.begin(telling)
		} else {
			p.propose()
		}
	case proposing:
		for _, r := range p.Ranks {
			if p.gone[r] {
				p.enter(gathering)
				return
			}
		}
		p.Decided, p.Ended = true, p.certain()
		p.begin(telling)
	case telling:
		for r := range p.gone {
			if r != p.Me && !p.gone[r] {
				p.post(r, Notice{Kind: Done, Ballot: p.ballot})
			}
		}
		p.End = Agreed
	}
}

// propose proposes the ranks that are not gone. That nobody has decided is known, so this rank is bound by nothing.
func (p *Party) propose() {
	p.ballot = (p.ballot>>32+1)<<32 | uint64(p.Me)
	p.Ranks, p.bound = nil, false
	for r, gone := range p.gone {
		if !gone {
			p.Ranks = append(p.Ranks, int32(r))
		}
	}
	if p.make() {
		p.begin(proposing)
	}
}

// begin tells the living members what is new, and waits for their answers.
func (p *Party) begin(ph phase) {
	p.enter(ph)
	for _, r := range p.Ranks {
		if int(r) != p.Me && !p.gone[r] {
			p.said[r] = Notice{}
			p.ask(int(r))
		}
	}
}

// Ballot is that of the proposal, or the decision.
func (p *Party) Ballot() uint64 { return p.ballot }
