package agree

import "slices"

// Renewed tells p that the connection to rank r broke and is there again, so that messages may be
// lost. This rank repeats its answer to the rank above it. It repeats its question to a rank below
// it that has not answered.
func (p *Party) Renewed(r int) {
	switch {
	case p.End != Open || p.gone.has(r):
	case r == p.tree.up:
		p.tree.sent, p.tree.told = false, false
		p.advance()
	case p.Waits(r):
		p.ask(r)
	}
}

// ask says to rank r what it is to answer.
func (p *Party) ask(r int) {
	switch p.tree.phase {
	case proposing:
		p.post(r, Notice{Kind: Propose, Ballot: p.ballot, Ranks: p.Ranks})
	case telling:
		p.post(r, Notice{Kind: Decide, Ballot: p.ballot, Ranks: p.Ranks, Ended: p.Ended})
	}
}

// Hear takes a notice of rank r.
func (p *Party) Hear(r int, n Notice) {
	if p.End != Open || p.gone.has(r) {
		return
	}
	p.leaves(n.Left, n.Sure)
	switch {
	case p.End != Open:
	case n.Kind == Quit:
		p.Dropped(r)
	case n.Kind == Alive:
	case int(n.Lead) > p.tree.lead: // ranks that are gone, as r knows
		p.early = append(p.early, Letter{r, n})
	case int(n.Lead) < p.tree.lead: // r will repeat the notice to this lead, once r knows the ranks that have left
		if len(p.left) > 0 && !(r == p.tree.up) {
			p.post(r, Notice{Kind: Alive, Left: p.left, Sure: p.sure})
		}
	case r == p.tree.up:
		p.hearLead(n)
	default:
		p.hearMember(r, n)
	}
}

// hearMember takes a notice of rank r, which believes that this rank is above it in the tree.
func (p *Party) hearMember(r int, n Notice) {
	t := &p.tree
	if n.Kind != Here && n.Kind != Ready && n.Kind != Decided {
		return
	}
	a := answer{n.Kind, n.Lead, n.Ballot}
	if n.Kind == Here {
		a.ballot = 0
		p.post(r, Notice{Kind: Alive}) // the other is to know that this one has come
		if n.Ballot != 0 && t.phase == gathering && !p.Decided && !p.decided(&n) {
			return
		}
	}
	of := n.For
	if of == nil {
		of = []int32{int32(r)}
	}
	for _, x := range of {
		if i := t.place(int(x)); i >= 0 && a.later(t.said[i]) {
			t.said[i], t.told = a, false
		}
	}
	if p.isBehind(a) {
		p.ask(r)
	}
	p.advance()
}

// isBehind reports whether an answer is to an earlier phase than this one, so that who gave it may
// not have heard of this.
func (p *Party) isBehind(a answer) bool {
	switch p.tree.phase {
	case proposing:
		return a.kind < Ready || a.ballot != p.ballot
	case telling:
		return a.kind < Decided || a.ballot != p.ballot
	}
	return false
}

// hearLead takes a notice of the lead, from the rank above.
func (p *Party) hearLead(n Notice) {
	t := &p.tree
	switch n.Kind {
	case Propose:
		if n.Ballot < t.asked || t.phase == telling { // another has passed on a later word
			return
		}
		if !contains(n.Ranks, p.Me) {
			p.End = Out
			return
		}
		again := t.asked == n.Ballot
		t.asked = n.Ballot
		if !p.bound || p.ballot != n.Ballot {
			p.ballot, p.Ranks, p.bound = n.Ballot, n.Ranks, true
			if !p.make() {
				return
			}
		}
		p.pass(proposing, again)
	case Decide:
		if p.Decided && p.ballot != n.Ballot { // by a lead that does not know that it was given up
			return
		}
		if !p.decided(&n) {
			return
		}
		p.pass(telling, t.phase == telling)
	case Done:
		p.tell(Notice{Kind: Done, Ballot: n.Ballot})
		if p.End = Agreed; !p.Decided { // without this rank
			p.End = Out
		}
	}
}

// pass goes on to a phase that the lead is in, tells those below, unless it is said again, and answers.
func (p *Party) pass(ph phase, again bool) {
	p.tree.sent = false
	if !again {
		p.begin(ph)
	}
	p.advance()
}

// decided takes in what is decided, and reports whether this rank is a member. If not the others have given it up.
func (p *Party) decided(n *Notice) bool {
	if !contains(n.Ranks, p.Me) {
		p.End = Out
		return false
	}
	p.Decided, p.ballot, p.Ranks, p.Ended = true, n.Ballot, n.Ranks, n.Ended
	return true
}

// certain lists the ranks that are no members and whose end is certain. The lead alone says so, in
// its decision: what ranks make of it must be the same on all.
func (p *Party) certain() (ended []int32) {
	for r := range p.size {
		if p.gone.has(r) && !p.isMember(r) && (p.HasEnded != nil && p.HasEnded(r) || slices.Contains(p.sure, int32(r))) {
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

// advance goes as far as what is known allows.
func (p *Party) advance() {
	for p.End == Open && p.first() < 0 {
		if p.Leads() {
			p.next()
			continue
		}
		if !p.tree.sent {
			p.tree.sent = true
			p.answer()
		}
		return
	}
}

// next begins the phase after one in which all have answered.
func (p *Party) next() {
	switch p.tree.phase {
	case gathering:
		if p.Decided { // under this lead or an earlier one
			p.begin(telling)
		} else {
			p.propose()
		}
	case proposing:
		for _, r := range p.Ranks {
			if p.gone.has(int(r)) {
				p.enter(gathering)
				return
			}
		}
		p.Decided, p.Ended = true, p.certain()
		p.begin(telling)
	case telling:
		p.tell(Notice{Kind: Done, Ballot: p.ballot})
		p.End = Agreed
	}
}

// propose proposes the ranks that are not gone. That nobody has decided is known, so this rank is bound by nothing.
func (p *Party) propose() {
	p.ballot = (p.ballot>>32+1)<<32 | uint64(p.Me)
	p.Ranks, p.bound = nil, false
	for r := range p.size {
		if !p.gone.has(r) {
			p.Ranks = append(p.Ranks, int32(r))
		}
	}
	if p.make() {
		p.begin(proposing)
	}
}

// enter begins a phase.
func (p *Party) enter(ph phase) { p.tree.phase, p.tree.heard = ph, 0 }

// begin tells those below what is new, and waits for their answers.
func (p *Party) begin(ph phase) {
	p.enter(ph)
	for i, via := range p.tree.via {
		if r := p.tree.rank(i); int(via) == r {
			p.ask(r)
		}
	}
}
