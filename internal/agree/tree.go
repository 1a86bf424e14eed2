package agree

import "slices"

// tree is a rank's place among those that speak with the lead, and what those below it have said.
type tree struct {
	lead  int     // -1: not known yet
	up    int     // -1: this rank leads
	via   []int32 // by rank below this one: the neighbor through which it speaks; -1 of all others; nil: none is below
	phase phase
	asked uint64   // the ballot of the last proposal of this lead, 0: none
	sent  bool     // up, what all below have answered in this phase
	said  []answer // by rank; nil: none was below yet
	heard int      // it waits for no rank below this one in this phase
}

// answer is the last word of a rank.
type answer struct {
	kind   Kind // Here, Ready or Decided; 0: none
	lead   int32
	ballot uint64
}

// later reports whether a takes the place of o. What a rank has said to a lead stays true, whatever reaches this rank
// afterwards on another way.
func (a answer) later(o answer) bool {
	switch {
	case a.lead != o.lead:
		return a.lead > o.lead || o.kind == 0
	case a.ballot != o.ballot:
		return a.ballot > o.ballot
	}
	return a.kind > o.kind
}

func contains(ranks []int32, r int) bool {
	_, is := slices.BinarySearch(ranks, int32(r))
	return is
}

// Look says who is gone: those that are lost, or have closed the Comm.
func (p *Party) Look(gone func(r int) bool) {
	changed := p.tree.lead < 0
	for r := range p.gone {
		if r != p.Me && !p.gone[r] && gone(r) {
			changed = true
			p.goes(r)
		}
	}
	if changed {
		p.place()
	}
	p.advance()
}

// goes notes that rank r is gone.
func (p *Party) goes(r int) {
	p.gone[r] = true
	if p.HasLeft != nil && p.HasLeft(r) {
		p.left = append(p.left, int32(r))
	}
}

// leaves notes that ranks have closed the Comm, as another says.
func (p *Party) leaves(ranks []int32) {
	changed := false
	for _, r := range ranks {
		if int(r) != p.Me && !p.gone[r] {
			changed = true
			p.gone[r] = true
			p.left = append(p.left, r)
		}
	}
	if changed {
		p.place()
		p.advance()
	}
}

// place finds this rank's place in the tree, once it knows who is gone.
func (p *Party) place() {
	t := &p.tree
	lead, up := p.lowest(), t.up
	t.up = p.above(p.Me, lead)
	t.heard = 0
	p.below(lead)
	if lead != t.lead {
		t.lead, t.phase, t.asked, t.sent = lead, gathering, 0, false
		if len(p.left) > 0 { // of which those below may not hear otherwise
			p.tell(Notice{Kind: Alive, Left: p.left})
		}
	} else if t.up != up {
		t.sent = false
	}
	early := p.early
	p.early = nil
	for _, l := range early {
		p.Hear(l.To, l.Notice)
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

// above is the rank through which rank r speaks with the lead, or the lead; -1 of the lead.
func (p *Party) above(r, lead int) int {
	if r == lead {
		return -1
	}
	if p.Above != nil {
		if up := p.Above(r, p.isGone); up >= 0 {
			return up
		}
	}
	return lead
}

func (p *Party) isGone(r int) bool { return p.gone[r] && r != p.Me }

// below finds the ranks that speak with the lead through this one.
func (p *Party) below(lead int) {
	t := &p.tree
	if p.Above == nil && lead != p.Me {
		t.via = nil
		return
	}
	const unknown = -2
	via, any := make([]int32, len(p.gone)), false
	for r := range via {
		via[r] = unknown
	}
	var find func(r int) int32
	find = func(r int) int32 {
		if via[r] == unknown {
			up := -1
			if r != p.Me && !p.gone[r] {
				up = p.above(r, lead)
			}
			switch {
			case up < 0:
				via[r] = -1
			case up == p.Me:
				via[r], any = int32(r), true
			default:
				via[r] = find(up)
			}
		}
		return via[r]
	}
	for r := range via {
		find(r)
	}
	if t.via = via; !any {
		t.via = nil
	} else if t.said == nil {
		t.said = make([]answer, len(p.gone))
	}
}

// lacks reports whether rank r is below this one and has not answered in this phase.
func (p *Party) lacks(r int) bool {
	t := &p.tree
	if t.via == nil || t.via[r] < 0 {
		return false
	}
	a := t.said[r]
	if int(a.lead) != t.lead {
		a = answer{}
	}
	switch t.phase {
	case proposing:
		return !(a.kind >= Ready && a.ballot == p.ballot) && p.isMember(r)
	case telling:
		return !(a.kind == Decided && a.ballot == p.ballot) && p.isMember(r)
	}
	return a.kind == 0
}

// lacksBelow reports whether a rank lacks that speaks through r.
func (p *Party) lacksBelow(r int) bool {
	if p.lacks(r) {
		return true
	}
	if p.Above == nil || p.tree.via == nil {
		return false
	}
	for x, via := range p.tree.via {
		if int(via) == r && p.lacks(x) {
			return true
		}
	}
	return false
}

// first is the first rank below this one that has not answered in this phase, -1 if there is none. All calls in a phase take as
// long together as one look at all ranks.
func (p *Party) first() int {
	t := &p.tree
	for t.heard < len(t.via) && !p.lacks(t.heard) { // nor will it, in this phase
		t.heard++
	}
	if t.heard >= len(t.via) {
		return -1
	}
	return t.heard
}

// First is the neighbor from whom this rank waits for word first, -1 if it waits for none.
func (p *Party) First() int {
	if p.End != Open || p.tree.lead < 0 {
		return -1
	}
	if r := p.first(); r >= 0 {
		return int(p.tree.via[r])
	}
	return p.tree.up
}

// Waits reports whether what rank r says is to be heard.
func (p *Party) Waits(r int) bool {
	t := &p.tree
	switch {
	case p.End != Open || t.lead < 0:
		return false
	case r == t.up:
		return true
	}
	return t.via != nil && int(t.via[r]) == r && p.lacksBelow(r)
}

// Hears lists the neighbors whose words are to be heard.
func (p *Party) Hears() (list []int) {
	for r := range p.gone {
		if p.Waits(r) {
			list = append(list, r)
		}
	}
	return list
}

// Missing lists the ranks that have not answered, as far as this one knows: of those below it, and if none of these lacks, the
// rank above it.
func (p *Party) Missing() (list []int) {
	if p.End != Open || p.tree.lead < 0 {
		return nil
	}
	for r := range p.tree.via {
		if p.lacks(r) {
			list = append(list, r)
		}
	}
	if list == nil && p.tree.up >= 0 {
		return []int{p.tree.up}
	}
	return list
}

// Report says up what those below have answered, though some lack. Nothing but the words of errors depends on it.
func (p *Party) Report() {
	if t := &p.tree; p.End == Open && t.up >= 0 && t.via != nil && t.phase == gathering && !t.sent {
		p.answer()
	}
}

// answer says up what this rank and those below it have answered in this phase.
func (p *Party) answer() {
	t := &p.tree
	n := Notice{Kind: Here, Left: p.left}
	switch {
	case t.phase == proposing:
		n = Notice{Kind: Ready, Ballot: p.ballot, Left: p.left}
	case t.phase == telling:
		n = Notice{Kind: Decided, Ballot: p.ballot, Left: p.left}
	case p.Decided:
		n.Ballot, n.Ranks, n.Ended = p.ballot, p.Ranks, p.Ended
	}
	if t.via != nil {
		for r, via := range t.via {
			a := t.said[r]
			ok := via >= 0 && int(a.lead) == t.lead && a.kind >= n.Kind
			if r == p.Me || ok && (n.Kind == Here || a.ballot == p.ballot) {
				n.For = append(n.For, int32(r))
			}
		}
	}
	p.post(t.up, n)
}
