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
// In a large Comm members and lead speak through a tree, in which a rank gathers the answers of those
// below it into one notice: see [Tree].
//
// test/model explores all that can happen to these functions.
package agree

// Kind is what a Notice says.
type Kind byte

// The kinds of notices.
const (
	Here    Kind = iota + 1 // I take part; with Ballot, Ranks and Ended where I know of a decision
	Propose                 // Ranks are the members
	Ready                   // I have made what the proposal needs of me
	Decide                  // Ranks and Ended
	Decided                 // I know it
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
	Lead   int32  // whom the sender takes for the lead
	Ballot uint64 // of the proposal: round<<32 | lead
	Ranks  []int32
	Ended  []int32 // of the ranks that are no members: those whose end is certain
	For    []int32 // the ranks that say this, where it is not the sender alone
	Left   []int32 // ranks that have closed the Comm, as the sender has seen or heard
	Sure   []int32 // those of Left that certainly have: see Asks.HasEnded
}

// Same reports whether n says what o does, as far as a glance tells: with the very same lists.
func (n *Notice) Same(o *Notice) bool {
	return n.Kind == o.Kind && n.Lead == o.Lead && n.Ballot == o.Ballot &&
		same(n.Ranks, o.Ranks) && same(n.Ended, o.Ended) && same(n.For, o.For) && same(n.Left, o.Left) && same(n.Sure, o.Sure)
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

// phase is what a lead does, and what a rank that passes on its words waits for.
type phase byte

const (
	gathering phase = iota // of what the others know
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

	Asks

	bound  bool // by a proposal: this rank is ready, so others may have decided
	size   int
	gone   set
	left   []int32 // of those that are gone: they have closed the Comm
	sure   []int32 // of these: certainly
	ballot uint64
	made   uint64 // the ballot of the last proposal for which Make was called
	tree   tree
	early  []Letter // what neighbors have said for a lead that is none yet; To is who did
}

// Asks are the functions that a Party calls. All but Make may be nil.
type Asks struct {
	// Make makes this rank's memory for the proposal of that ballot before the rank says that it is
	// ready, and takes back the memory of the ballot before. So the memory is there once the proposal is decided.
	Make func(ballot uint64, ranks []int32) error
	// HasEnded reports whether it is certain that rank r, which is gone, has ended: it is not only silent or out of reach.
	// Where it is nil nothing is certain.
	HasEnded func(r int) bool
	// HasLeft reports whether rank r, which is gone, seems to have closed the Comm: those above this
	// rank in the tree are told. They may have no other way to know, and would wait for it. Where it
	// is nil no rank has.
	HasLeft func(r int) bool
	// Tree is how ranks speak with the lead. Where it is nil each speaks with the lead itself.
	Tree Tree
}

// New is rank me's part, of size ranks. Look begins it.
func New(me, size int, asks Asks) *Party {
	return &Party{Me: me, Quitter: -1, Asks: asks, size: size, gone: setFor(size), ballot: uint64(me),
		tree: tree{lead: -1, up: -1}}
}

// Lead is the rank that this one follows, or itself.
func (p *Party) Lead() int { return p.tree.lead }

// Leads reports whether this rank is the lead.
func (p *Party) Leads() bool { return p.tree.lead == p.Me }

// Up is the rank through which this one speaks with the lead, or the lead; -1 where it leads.
func (p *Party) Up() int { return p.tree.up }

// Relays reports whether others speak with the lead through this rank, or it leads them.
func (p *Party) Relays() bool { return p.tree.relays }

// Ballot is that of the proposal, or the decision.
func (p *Party) Ballot() uint64 { return p.ballot }

// Made is the ballot of the last proposal for which this rank has made what it is to have, 0 if
// there was none. Once the agreement is reached it is Ballot.
func (p *Party) Made() uint64 { return p.made }

// MayQuit reports whether this rank may end the agreement for a reason of its own: nobody can have decided.
func (p *Party) MayQuit() bool { return p.End == Open && !p.Decided && !p.bound }

// Give ends the agreement, if MayQuit allows that, and tells the ranks that wait for this rank.
func (p *Party) Give() { p.quit(p.Me) }

func (p *Party) quit(who int) {
	p.End, p.Quitter = GaveUp, who
	p.tell(Notice{Kind: Quit})
	if p.tree.up >= 0 {
		p.post(p.tree.up, Notice{Kind: Quit})
	}
}

func (p *Party) post(to int, n Notice) {
	n.Lead = int32(p.tree.lead)
	p.Post = append(p.Post, Letter{to, n})
}

// tell says n to all that speak with the lead through this rank and no other.
func (p *Party) tell(n Notice) {
	for i, via := range p.tree.via {
		if r := p.tree.rank(i); int(via) == r {
			p.post(r, n)
		}
	}
}

// Over says that rank r has come to the end of the agreement, with success. Nobody does before all members know
// the decision.
func (p *Party) Over(r int) {
	switch {
	case p.End != Open:
	case p.Decided:
		p.tell(Notice{Kind: Done, Ballot: p.ballot})
		p.End = Agreed
	default:
		p.End = Out
	}
}

// Lost says that the others have given this rank up.
func (p *Party) Lost() {
	if p.End == Open {
		p.End = Out
	}
}

// Dropped says that rank r has given the agreement up. It was not ready for a proposal that it is a
// member of, so nobody has decided that. One that is not a member may do what it likes.
func (p *Party) Dropped(r int) {
	if p.End == Open && !p.Decided && !p.gone.has(r) && (!p.bound || p.isMember(r)) {
		p.quit(r)
	}
}

// isMember reports whether rank r is one of the proposal, whose ranks are in order.
func (p *Party) isMember(r int) bool { return contains(p.Ranks, r) }
