package algo

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/internal/op"
)

// Check proves algorithm name for one kind, topology and root. It runs the schedules
// of all ranks with the least generous transport there is, on which a message passes
// only when both sides are in a step that lists it, and returns an error that says
// which rank went wrong in which step unless
//
//   - every rank finishes: no deadlock, no message without its other half;
//   - both sides of a message mean the same parts, and the sender holds them;
//   - all parts of a message have as many contributions, unless Even replaces the
//     algorithm;
//   - no step replaces a part that it also sends, or receives into one part twice
//     but to reduce, and only a schedule with Swap reduces into a part it sends;
//   - every rank ends with what the kind promises: each contribution exactly once,
//     combined by the same expression on all ranks, and for chain by the fold from
//     the left.
func Check(name string, k op.Kind, t Topology, root int) error {
	ranks := make([]Schedule, t.Size())
	for r := range ranks {
		s, err := Build(name, k, t, r, root)
		if err != nil {
			return err
		}
		ranks[r] = s
	}
	if len(ranks) == 0 {
		return fmt.Errorf("algo: %s %s: a topology of no ranks", name, k.Flag())
	}
	if err := prove(k, root, ranks, algorithms[indexOf(name)].fromLeft); err != nil {
		return fmt.Errorf("algo: %s %s of %d ranks on %d hosts, root %d: %w", name, k.Flag(), t.Size(), t.Nodes(), root, err)
	}
	return nil
}

// prove is Check of the schedules of all ranks; fromLeft asks for the left fold.
func prove(k op.Kind, root int, ranks []Schedule, fromLeft bool) error {
	p, err := newProof(k, root, ranks)
	if err != nil {
		return err
	}
	if err := p.run(); err != nil {
		return err
	}
	return p.verify(fromLeft)
}

// A proof is a simulated job.
type proof struct {
	kind  op.Kind
	root  int
	n     int
	parts int
	terms terms
	ranks []player
	pairs [][]int32 // at src*n+dst, posted and unmatched: receive i as i, send i as ^i
	ready []int     // ranks whose step is complete
	mark  []uint8   // at a part, while a step is looked at
}

// What mark says about a part.
const (
	sent     = 1 << iota
	replaced // received into
	reduced  // received into, combining
)

// A player is one rank of a proof.
type player struct {
	Schedule
	k     int  // the step it is in
	step  Step // that step
	open  int  // its moves that have not passed
	v     []term
	count []int32 // how many contributions each part of v has, where the messages of the algorithm must be even
	in    []term  // what has arrived in this step
	inN   []int32 // of how many contributions
	inAt  []int32 // where in it receive i begins
	heard set     // Barrier: whom it knows to be there
}

func newProof(k op.Kind, root int, ranks []Schedule) (*proof, error) {
	n := len(ranks)
	p := &proof{
		kind: k, root: root, n: n, parts: ranks[0].Parts,
		ranks: make([]player, n), pairs: make([][]int32, n*n),
	}
	for r, s := range ranks {
		if s.Parts != p.parts {
			return nil, fmt.Errorf("rank %d has %d parts, rank 0 has %d", r, s.Parts, p.parts)
		}
	}
	if p.parts < 1 || k.Blocks() && p.parts != n && n > 1 {
		return nil, fmt.Errorf("%d parts", p.parts)
	}
	p.mark = make([]uint8, p.parts)
	for r := range p.ranks {
		v := make([]term, p.parts)
		for part := range v {
			if p.holds(r, part) {
				v[part] = leaf(r)
			}
		}
		p.ranks[r] = player{Schedule: ranks[r], k: -1, v: v}
		if k.Reduces() && Even(ranks[r].Name, k) == ranks[r].Name {
			p.ranks[r].count = slices.Repeat([]int32{1}, p.parts)
		}
		if k == op.Barrier {
			p.ranks[r].heard = newSet(n)
			p.ranks[r].heard.add(r)
		}
	}
	return p, nil
}

// holds reports whether rank r starts with valid data in part. AllToAll's V is the
// destination, where only the own block is there from the start.
func (p *proof) holds(r, part int) bool {
	switch p.kind {
	case op.Broadcast, op.Scatter:
		return r == p.root
	case op.AllGather, op.Gather, op.AllToAll:
		return r == part
	default:
		return true
	}
}

// run plays all steps of all ranks.
func (p *proof) run() error {
	for r := range p.ranks {
		p.ready = append(p.ready, r)
	}
	for len(p.ready) > 0 {
		last := len(p.ready) - 1
		r := p.ready[last]
		p.ready = p.ready[:last]
		for pl := &p.ranks[r]; pl.open == 0 && pl.k < pl.Steps; {
			p.leave(r)
			if pl.k++; pl.k < pl.Steps {
				if err := p.enter(r); err != nil {
					return fmt.Errorf("rank %d, step %d of %d: %w", r, pl.k, pl.Steps, err)
				}
			}
		}
	}
	for r := range p.ranks {
		if p.ranks[r].k < p.ranks[r].Steps {
			return p.stuck(r)
		}
	}
	return nil
}

// enter begins rank r's next step: it looks the moves over and posts them.
func (p *proof) enter(r int) error {
	pl := &p.ranks[r]
	pl.At(pl.k, &pl.step)
	if len(pl.step.Send)+len(pl.step.Recv) == 0 {
		return fmt.Errorf("does nothing")
	}
	if err := p.look(r); err != nil {
		return err
	}
	pl.open = len(pl.step.Send) + len(pl.step.Recv)
	pl.in, pl.inN, pl.inAt = pl.in[:0], pl.inN[:0], pl.inAt[:0]
	for _, m := range pl.step.Recv {
		pl.inAt = append(pl.inAt, int32(len(pl.in)))
		for range m.Hi - m.Lo {
			pl.in, pl.inN = append(pl.in, 0), append(pl.inN, 0)
		}
	}
	for i, m := range pl.step.Send {
		if err := p.post(r, m.Peer, ^int32(i)); err != nil {
			return err
		}
	}
	for i, m := range pl.step.Recv {
		if err := p.post(m.Peer, r, int32(i)); err != nil {
			return err
		}
	}
	return nil
}

// look checks what one rank can know about its step.
func (p *proof) look(r int) error {
	pl := &p.ranks[r]
	if p.kind == op.AllToAll {
		// Blocks are sent from one buffer and received into another.
		for _, ms := range [2][]Move{pl.step.Send, pl.step.Recv} {
			for _, m := range ms {
				if m.Peer < 0 || m.Peer >= p.n || m.Peer == r || m.Lo != m.Peer || m.Hi != m.Peer+1 || m.Reduce {
					return fmt.Errorf("%+v is no block", m)
				}
			}
		}
		return nil
	}
	for _, m := range pl.step.Send {
		if err := p.valid(r, m); err != nil {
			return err
		}
		if err := pl.even(m); err != nil {
			return err
		}
		if m.Reduce {
			return fmt.Errorf("a send to rank %d that reduces", m.Peer)
		}
		for part := m.Lo; part < m.Hi; part++ {
			if pl.v[part] == 0 {
				return fmt.Errorf("sends part %d to rank %d, but does not hold it", part, m.Peer)
			}
			p.mark[part] |= sent
		}
	}
	for _, m := range pl.step.Recv {
		if err := p.valid(r, m); err != nil {
			return err
		}
		if m.Reduce {
			if err := pl.even(m); err != nil {
				return err
			}
		}
		for part := m.Lo; part < m.Hi; part++ {
			was, is := p.mark[part], uint8(replaced)
			if m.Reduce {
				is = reduced
			}
			switch {
			case was&sent != 0 && !(m.Reduce && pl.Swap):
				return fmt.Errorf("receives part %d from rank %d while it sends that part", part, m.Peer)
			case was&^sent != 0 && was&^sent != is || was&replaced != 0:
				return fmt.Errorf("receives part %d from rank %d and from another rank", part, m.Peer)
			case m.Reduce && pl.v[part] == 0:
				return fmt.Errorf("reduces part %d from rank %d into nothing", part, m.Peer)
			}
			p.mark[part] |= is
		}
	}
	for _, ms := range [2][]Move{pl.step.Send, pl.step.Recv} {
		for _, m := range ms {
			clear(p.mark[m.Lo:m.Hi])
		}
	}
	return nil
}

// even checks that all parts of a message have as many contributions: an average is combined as a mean of that many, and
// a message says the number once.
func (pl *player) even(m Move) error {
	for part := m.Lo; pl.count != nil && part < m.Hi; part++ {
		if a, b := pl.count[m.Lo], pl.count[part]; a != b {
			return fmt.Errorf("a message to or from rank %d has part %d of %d contributions and part %d of %d", m.Peer, m.Lo, a, part, b)
		}
	}
	return nil
}

// valid checks one move by itself.
func (p *proof) valid(r int, m Move) error {
	switch {
	case m.Peer < 0 || m.Peer >= p.n || m.Peer == r:
		return fmt.Errorf("a message to or from rank %d", m.Peer)
	case m.Lo < 0 || m.Lo > m.Hi || m.Hi > p.parts:
		return fmt.Errorf("a message of parts [%d,%d) of %d", m.Lo, m.Hi, p.parts)
	case (m.Lo == m.Hi) != (p.kind == op.Barrier):
		return fmt.Errorf("a message of %d parts in a %s", m.Hi-m.Lo, p.kind.Flag())
	case m.Reduce && !p.kind.Reduces():
		return fmt.Errorf("reduces in a %s", p.kind.Flag())
	}
	return nil
}

// post offers a move between src and dst, and passes the message if the other side
// waits for it.
func (p *proof) post(src, dst int, move int32) error {
	queue := &p.pairs[src*p.n+dst]
	if len(*queue) == 0 || ((*queue)[0] < 0) == (move < 0) {
		*queue = append(*queue, move)
		return nil
	}
	other := (*queue)[0]
	*queue = append((*queue)[:0], (*queue)[1:]...)
	return p.pass(src, dst, int(^min(move, other)), int(max(move, other)))
}

// pass moves send i of src into receive j of dst.
func (p *proof) pass(src, dst, i, j int) error {
	from, to := &p.ranks[src], &p.ranks[dst]
	out, in := from.step.Send[i], to.step.Recv[j]
	switch p.kind {
	case op.Barrier:
		to.heard.later(from.heard)
	case op.AllToAll:
		if to.v[src] != 0 {
			return fmt.Errorf("the block of rank %d reaches rank %d a second time", src, dst)
		}
		to.v[src] = leaf(src)
	default:
		if out.Lo != in.Lo || out.Hi != in.Hi {
			return fmt.Errorf("rank %d sends parts [%d,%d) to rank %d, which receives them as [%d,%d)", src, out.Lo, out.Hi, dst, in.Lo, in.Hi)
		}
		copy(to.in[to.inAt[j]:], from.v[out.Lo:out.Hi])
		if from.count != nil {
			copy(to.inN[to.inAt[j]:], from.count[out.Lo:out.Hi])
		}
	}
	for _, r := range [2]int{src, dst} {
		if p.ranks[r].open--; p.ranks[r].open == 0 {
			p.ready = append(p.ready, r)
		}
	}
	return nil
}

// leave ends rank r's step: what arrived takes its place.
func (p *proof) leave(r int) {
	pl := &p.ranks[r]
	switch {
	case pl.k < 0 || p.kind == op.AllToAll:
	case p.kind == op.Barrier:
		pl.heard.now()
	default:
		for i, m := range pl.step.Recv {
			got := pl.in[pl.inAt[i]:]
			for part := m.Lo; part < m.Hi; part++ {
				x := got[part-m.Lo]
				if pl.count != nil {
					n := pl.inN[int(pl.inAt[i])+part-m.Lo]
					if m.Reduce {
						n += pl.count[part]
					}
					pl.count[part] = n
				}
				switch {
				case !m.Reduce:
					pl.v[part] = x
				case m.Peer < r:
					pl.v[part] = p.terms.op(x, pl.v[part])
				default:
					pl.v[part] = p.terms.op(pl.v[part], x)
				}
			}
		}
	}
}

// stuck says what rank r waits for in vain.
func (p *proof) stuck(r int) error {
	where := func(peer int) string {
		if pl := &p.ranks[peer]; pl.k < pl.Steps {
			return fmt.Sprintf("is in step %d", pl.k)
		}
		return "has finished"
	}
	for peer := range p.n {
		for _, move := range p.pairs[r*p.n+peer] {
			if move < 0 {
				return fmt.Errorf("rank %d is stuck in step %d: it sends %+v, but rank %d %s", r, p.ranks[r].k, p.ranks[r].step.Send[^move], peer, where(peer))
			}
		}
		for _, move := range p.pairs[peer*p.n+r] {
			if move >= 0 {
				return fmt.Errorf("rank %d is stuck in step %d: it receives %+v, but rank %d %s", r, p.ranks[r].k, p.ranks[r].step.Recv[move], peer, where(peer))
			}
		}
	}
	return fmt.Errorf("rank %d is stuck in step %d", r, p.ranks[r].k)
}
