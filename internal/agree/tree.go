package agree

import "slices"

// Tree is how ranks speak with the lead through others.
//
// Two ranks may know of different losses, so one may speak to another that does not listen to it,
// or waits for it in vain, until both know of all. Nothing is decided by where a rank is in the
// tree: an answer says whose it is, and for which lead.
type Tree interface {
	// Above is the rank through which rank r speaks with the lead, -1 if it does without others. It
	// follows from r, from those that are gone, and from what all ranks know alike, and nowhere goes
	// in a circle.
	Above(r int, gone func(r int) bool) int
	// Below lists, in order, the ranks that may come to speak through rank r while it does not lead, whoever is gone.
	Below(r int) []int32
}

// tree is a rank's place in the tree below the lead, and the answers of the ranks below it.
type tree struct {
	lead   int     // -1: not known yet
	up     int     // -1: this rank leads
	listed []int32 // the ranks that may be below this one; nil: all, or none
	via    []int32 // by place in listed: the neighbor through which that rank's answers come; -1: by none
	said   []answer
	relays bool // some rank is below this one

	phase phase
	asked uint64 // the ballot of the last proposal of this lead, 0: none
	sent  bool   // up, what all below have answered in this phase
	told  bool   // up, all that those below have answered by now
	heard int    // in this phase the rank waits for no rank at a smaller place
}

// rank is the rank at place i.
func (t *tree) rank(i int) int {
	if t.listed == nil {
		return i
	}
	return int(t.listed[i])
}

// place is the place of rank r, -1 if it has none.
func (t *tree) place(r int) int {
	if t.listed == nil {
		if r < len(t.via) {
			return r
		}
		return -1
	}
	if i, is := slices.BinarySearch(t.listed, int32(r)); is {
		return i
	}
	return -1
}

// isNeighbor reports whether rank r speaks with this one and through no other.
func (t *tree) isNeighbor(r int) bool {
	i := t.place(r)
	return i >= 0 && int(t.via[i]) == r
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
	for r := range p.size {
		if r != p.Me && !p.gone.has(r) && gone(r) {
			changed = true
			p.gone.add(r)
			if p.HasLeft != nil && p.HasLeft(r) {
				p.left = append(p.left, int32(r))
				if p.HasEnded != nil && p.HasEnded(r) {
					p.sure = append(p.sure, int32(r))
				}
			}
		}
	}
	if changed {
		p.settle()
	}
	p.advance()
}

// leaves notes that ranks have closed the Comm, as another says, and which of them certainly have.
func (p *Party) leaves(ranks, sure []int32) {
	for _, r := range sure {
		if !slices.Contains(p.sure, r) {
			p.sure = append(p.sure, r)
		}
	}
	changed := false
	for _, r := range ranks {
		if int(r) != p.Me && !p.gone.has(int(r)) {
			changed = true
			p.gone.add(int(r))
			p.left = append(p.left, r)
		}
	}
	if changed {
		p.settle()
		p.advance()
	}
}

// settle finds this rank's place in the tree, once it knows who is gone.
func (p *Party) settle() {
	t := &p.tree
	lead, up := p.lowest(), t.up
	t.up = p.above(p.Me, lead)
	t.heard, t.told = 0, false
	p.below(lead)
	if lead != t.lead {
		t.lead, t.phase, t.asked, t.sent = lead, gathering, 0, false
		if len(p.left) > 0 { // of which those below may not hear otherwise
			p.tell(Notice{Kind: Alive, Left: p.left, Sure: p.sure})
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
	r := 0
	for r != p.Me && p.gone.has(r) {
		r++
	}
	return r
}

// above is the rank through which rank r speaks with the lead, or the lead; -1 of the lead.
func (p *Party) above(r, lead int) int {
	if r == lead {
		return -1
	}
	if p.Tree != nil {
		if up := p.Tree.Above(r, p.gone.has); up >= 0 {
			return up
		}
	}
	return lead
}

// below finds the ranks that speak with the lead through this one.
func (p *Party) below(lead int) {
	t := &p.tree
	switch {
	case lead == p.Me && (t.listed != nil || t.via == nil): // it leads now
		said := make([]answer, p.size)
		for i, a := range t.said {
			said[t.rank(i)] = a
		}
		t.listed, t.said = nil, said
	case lead == p.Me:
	case p.Tree == nil:
		return
	case t.via == nil:
		if t.listed = p.Tree.Below(p.Me); len(t.listed) == 0 {
			return
		}
		t.said = make([]answer, len(t.listed))
	}
	const unknown = -2
	t.relays, t.via = false, make([]int32, len(t.said))
	for i := range t.via {
		t.via[i] = unknown
	}
	var find func(r int) int32
	find = func(r int) int32 {
		i := t.place(r)
		if i < 0 {
			return -1
		}
		if t.via[i] == unknown {
			up := -1
			if r != p.Me && !p.gone.has(r) {
				up = p.above(r, lead)
			}
			switch {
			case up < 0:
				t.via[i] = -1
			case up == p.Me:
				t.via[i], t.relays = int32(r), true
			default:
				t.via[i] = find(up)
			}
		}
		return t.via[i]
	}
	for i := range t.via {
		find(t.rank(i))
	}
}

// lacks reports whether the rank at place i is below this one and has not answered in this phase.
func (p *Party) lacks(i int) bool {
	t := &p.tree
	if t.via[i] < 0 {
		return false
	}
	a := t.said[i]
	if int(a.lead) != t.lead {
		a = answer{}
	}
	switch t.phase {
	case proposing:
		return !(a.kind >= Ready && a.ballot == p.ballot) && p.isMember(t.rank(i))
	case telling:
		return !(a.kind == Decided && a.ballot == p.ballot) && p.isMember(t.rank(i))
	}
	return a.kind == 0
}

// first is the first place of a rank below this one that has not answered in this phase, -1 if
// there is none. All calls in a phase take as long together as one look at all ranks.
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
	if i := p.first(); i >= 0 {
		return int(p.tree.via[i])
	}
	return p.tree.up
}

// Waits reports whether what rank r says is to be heard: of the one above, and of a neighbor below
// as long as one lacks that speaks through it.
func (p *Party) Waits(r int) bool {
	t := &p.tree
	switch {
	case p.End != Open || t.lead < 0:
		return false
	case r == t.up:
		return true
	case !t.isNeighbor(r):
		return false
	case p.lacks(t.place(r)):
		return true
	case p.Tree == nil:
		return false
	}
	for i, via := range t.via {
		if int(via) == r && p.lacks(i) {
			return true
		}
	}
	return false
}

// Hears lists the neighbors whose words are to be heard.
func (p *Party) Hears() (list []int) {
	t := &p.tree
	if p.End != Open || t.lead < 0 {
		return nil
	}
	if t.up >= 0 {
		list = append(list, t.up)
	}
	lacking := map[int32]bool{}
	for i, via := range t.via {
		if p.lacks(i) && !lacking[via] {
			lacking[via] = true
			list = append(list, int(via))
		}
	}
	return list
}

// Missing lists the ranks that have not answered, as far as this one knows: of those below it, and
// if none of these lacks, the rank above it.
func (p *Party) Missing() (list []int) {
	if p.End != Open || p.tree.lead < 0 {
		return nil
	}
	for i := range p.tree.via {
		if p.lacks(i) {
			list = append(list, p.tree.rank(i))
		}
	}
	if list == nil && p.tree.up >= 0 {
		return []int{p.tree.up}
	}
	return list
}

// Report says up who of those below has come, though some lack, unless it has said so. Nothing but
// the words of errors depends on it.
func (p *Party) Report() {
	if t := &p.tree; p.End == Open && t.up >= 0 && t.relays && t.phase == gathering && !t.sent && !t.told {
		t.told = true
		p.answer()
	}
}

// answer sends up the answers of this phase: that of this rank and those of the ranks below.
func (p *Party) answer() {
	t := &p.tree
	n := Notice{Kind: Here, Left: p.left, Sure: p.sure}
	switch {
	case t.phase == proposing:
		n.Kind, n.Ballot = Ready, p.ballot
	case t.phase == telling:
		n.Kind, n.Ballot = Decided, p.ballot
	case p.Decided:
		n.Ballot, n.Ranks, n.Ended = p.ballot, p.Ranks, p.Ended
	}
	if t.relays {
		for i, via := range t.via {
			a := t.said[i]
			if via >= 0 && int(a.lead) == t.lead && a.kind >= n.Kind && (n.Kind == Here || a.ballot == p.ballot) {
				n.For = append(n.For, int32(t.rank(i)))
			}
		}
		at, _ := slices.BinarySearch(n.For, int32(p.Me))
		n.For = slices.Insert(n.For, at, int32(p.Me))
	}
	p.post(t.up, n)
}
