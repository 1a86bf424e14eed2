package cpu

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/lived"
)

// meeting is one attempt of one rank at Subset. Ranks in it are those of the world.
//
// Each attempt has a number, which its notes repeat, and which the hub knows of each rank that has
// come. A note with another number is left of an attempt that is over: nobody listens to it.
//
// A rank that leaves before all have come tells the hub, if the hub has heard it come, and the hub
// tells all that have come. To the others, which may not have come, it offers the news for a
// moment: those that wait take it. A rank that comes later does not hear of it, as if the other had
// not come at all.
type meeting struct {
	c            *Comm
	ctx          context.Context
	box          letterBox
	self, hub    int
	ranks        []int
	list, number uint64
	id           uint64         // of the Comm: 0 until all have come
	known        map[int]uint64 // the hub's: the attempts of those that have come
	gone         map[int]*note  // the hub's: the ranks that left before it read their hello
	made         int            // the hub's: how many others have made their end
	outcome      *call.Fault    // why it came to nothing, once another rank has said so
	over         *note          // the hub's: what it has told the others when it ended the attempt
	memory       *note          // that was offered
}

const (
	// tellFor is how long a rank that leaves waits for others to take the news, if some of them may not be there.
	tellFor = 100 * time.Millisecond
	// verdictGrace is how much longer than its own time a rank waits for the hub to say who is missing.
	verdictGrace = 500 * time.Millisecond
	// againMost is how often a receive is posted anew that has failed although c has not.
	againMost = 100
)

// meet begins an attempt.
func meet(ctx context.Context, c *Comm, a *mail.Account, ranks []int, tag int) *meeting {
	m := &meeting{c: c, ctx: ctx, self: c.World(c.Rank()), number: proc.Number() | 1, known: map[int]uint64{},
		gone: map[int]*note{},
		box:  letterBox{a, int64(tag), map[*letter]bool{}, make(chan *letter, 2*len(ranks)+4)}}
	h := fnv.New64a()
	for _, r := range ranks {
		m.ranks = append(m.ranks, c.World(r))
		_ = binary.Write(h, binary.LittleEndian, uint64(c.World(r)))
	}
	m.hub, m.list = slices.Min(m.ranks), h.Sum64()
	return m
}

// send sends n to rank w.
func (m *meeting) send(use mail.Use, w int, n *note) *mail.Sending {
	n.from, n.to, n.list = m.number, m.known[w], m.list
	return m.box.a.Send(m.box.what(use, n), w)
}

// next waits for the next note that counts, and says which rank it is from.
func (m *meeting) next(ctx context.Context) (n *note, w int, f *call.Fault) {
	for again := 0; ; {
		select {
		case l := <-m.box.came:
			f = m.box.took(l)
			switch {
			case f == nil && l.out == nil:
				if n = m.read(l); n != nil {
					return n, l.in.Source(), nil
				}
			case f == nil:
			case l.out != nil, f.Code == call.Closed, m.c.rank.Fate.Cause() != nil, again == againMost:
				return nil, -1, f
			default: // the message was given up after it had been matched
				again++
				m.box.post(l.use, l.from)
			}
		case <-ctx.Done():
			return nil, -1, call.CtxFault(ctx.Err(), m.self, nil)
		}
	}
}

// read is the note of l, nil if it does not count. The next one is waited for, but one hello is enough.
func (m *meeting) read(l *letter) *note {
	n, w := &l.note, l.in.Source()
	if l.use != mail.Subset {
		m.box.post(l.use, l.from)
	}
	switch {
	case l.use == mail.Subset:
		if over := m.gone[w]; over != nil && over.from == n.from {
			m.outcome = over.fault(m.ranks)
		}
		return n
	case l.use == mail.SubsetNews && m.self != m.hub:
		if n.to != m.number {
			return nil
		}
		if n.what == noteOver {
			m.outcome = n.fault(m.ranks)
		}
		return n
	case l.use == mail.SubsetNews:
		if n.from != m.known[w] {
			if m.known[w] == 0 && n.what == noteOver {
				// its hello has come as well, and is read later, unless both are of an attempt before
				m.gone[w] = n
			}
			return nil
		}
		switch {
		case n.what == noteOver, n.what == noteMade && n.code != 0:
			m.outcome = n.fault(m.ranks)
		case n.what == noteMade:
			m.made++
		}
		return n
	case n.what == noteMemory:
		m.keep(n)
		return n
	case n.what == noteOver && m.id == 0 && n.list == m.list:
		m.outcome = n.fault(m.ranks)
		return n
	}
	return nil
}

// keep keeps an offer of memory until this rank wants it. It replaces an older offer: this rank has
// taken the older memory, and counts itself out there.
func (m *meeting) keep(n *note) {
	if old := m.memory; old != nil {
		giveUp(m.c.rank.Site.Here.Host, old.off, int(old.locals), []int{int(old.local)})
	}
	m.memory = n
}

// gather returns once all have come, and m.id is known. The hub proposes id.
func (m *meeting) gather(id uint64) *call.Fault {
	if m.self == m.hub {
		return m.collect(id)
	}
	return m.come()
}

// collect has the hub wait for all others.
func (m *meeting) collect(id uint64) *call.Fault {
	for _, w := range m.ranks {
		if w != m.self {
			m.box.post(mail.Subset, w)
			m.box.post(mail.SubsetNews, w)
		}
	}
	m.box.post(mail.SubsetOffers, mail.Any)
	var odd *call.Fault
	for len(m.known) < len(m.ranks)-1 {
		n, w, f := m.next(m.ctx)
		switch {
		case f != nil && m.ctx.Err() != nil && odd != nil:
			return m.end(odd)
		case f != nil:
			return m.end(m.named(f))
		case n.what == noteHello:
			if m.known[w] = n.from; n.list != m.list && odd == nil {
				odd = &call.Fault{Code: call.Mismatch, Peer: w, Err: errLists}
			}
		}
		if m.outcome != nil {
			return m.end(m.named(m.outcome))
		}
	}
	if odd != nil {
		return m.end(odd)
	}
	m.id = id
	for w := range m.known {
		m.send(mail.SubsetNews, w, &note{what: noteBegins, id: id})
	}
	return nil
}

// named is f; if f is a timeout, it names the ranks that have not come.
func (m *meeting) named(f *call.Fault) *call.Fault {
	if f.Code != call.Timeout || m.id != 0 || m.c.rank.Fate.Cause() != nil {
		return f
	}
	late := &call.Fault{Code: call.Timeout, Peer: -1, Own: f.Own, Err: errAbsent}
	for _, w := range m.ranks {
		if w != m.self && m.known[w] == 0 {
			late.Missing = append(late.Missing, w)
		}
	}
	if len(late.Missing) > 0 {
		late.Peer = late.Missing[0]
	}
	return late
}

// end has the hub tell all others that it has come to nothing, and returns f, which is why.
func (m *meeting) end(f *call.Fault) *call.Fault {
	if m.c.rank.Fate.Cause() != nil { // which they hear of anyway
		return f
	}
	over := m.told(f)
	m.over = &over
	for l := range m.box.open {
		if l.use == mail.Subset {
			l.in.Cancel()
		}
	}
	var news, offers []*mail.Sending
	for _, w := range m.ranks {
		switch n := over; {
		case w == m.self:
		case m.known[w] != 0:
			news = append(news, m.send(mail.SubsetNews, w, &n))
		default: // it may not be there
			offers = append(offers, m.send(mail.SubsetOffers, w, &n))
		}
	}
	m.flush(news, offers)
	return f
}

// refuse tells rank w, whose hello has come after the end, of that.
func (m *meeting) refuse(w int, hello *note) *mail.Sending {
	m.known[w] = hello.from
	over := *m.over
	return m.send(mail.SubsetNews, w, &over)
}

// told is what the others hear if this rank leaves with f.
func (m *meeting) told(f *call.Fault) note {
	g := *f
	if g.Own && g.Peer < 0 && len(g.Missing) == 0 {
		g.Peer = m.self
	}
	return *(&note{what: noteOver, id: m.id}).blame(&g)
}

// flush waits until the news are on their way and the offers are taken, for tellFor at most, and
// takes back offers that nobody takes. News that are late stay on their way: other ranks wait for
// them, perhaps without a limit.
func (m *meeting) flush(news, offers []*mail.Sending) {
	limit, cancel := lived.Within(context.WithoutCancel(m.ctx), tellFor)
	defer cancel()
	sent := slices.Concat(news, offers)
	for i := 0; i < len(sent); {
		select {
		case <-sent[i].Done():
			i++
		case l := <-m.box.came:
			if m.box.took(l) != nil || l.out != nil {
				break
			}
			if n := m.read(l); n != nil && n.what == noteHello {
				sent = append(sent, m.refuse(l.in.Source(), n))
			}
		case <-limit.Done():
			m.takeBack(offers)
			return
		}
	}
}

// takeBack takes back what was sent, unless it is on its way in any case.
func (m *meeting) takeBack(sent []*mail.Sending) {
	limit, cancel := lived.Within(context.WithoutCancel(m.ctx), tellFor)
	defer cancel()
	for _, s := range sent {
		s.Cancel()
	}
	for _, s := range sent {
		select {
		case <-s.Done():
		case <-limit.Done():
			return
		}
	}
}

// come says to the hub that this rank has come, and waits for it to say that all have.
func (m *meeting) come() *call.Fault {
	m.box.post(mail.SubsetNews, m.hub)
	m.box.post(mail.SubsetOffers, mail.Any)
	hello := &letter{use: mail.Subset, out: m.send(mail.Subset, m.hub, &note{what: noteHello})}
	m.box.await(hello, hello.out)
	for {
		n, w, f := m.next(m.ctx)
		switch {
		case f != nil:
			return m.leave(hello.out, f, m.ctx.Err() != nil && f.Own)
		case n.what == noteOver && w == m.hub && n.to != 0:
			return m.outcome
		case n.what == noteOver:
			return m.leave(hello.out, m.outcome, false)
		case n.what == noteBegins:
			m.id = n.id
			return nil
		}
	}
}

// leave ends the attempt of a rank before it has heard that all have come, and tells the others.
// own says that it is this rank whose context has ended.
func (m *meeting) leave(hello *mail.Sending, f *call.Fault, own bool) *call.Fault {
	if m.c.rank.Fate.Cause() != nil || f.Code == call.Closed {
		return f
	}
	m.takeBack([]*mail.Sending{hello})
	ended := isDone(hello)
	taken, back := ended && hello.Fault() == nil, ended && hello.Fault() != nil // else the hub may have it later
	late := own && f.Code == call.Timeout
	if late && !taken {
		f = &call.Fault{Code: call.Timeout, Peer: m.hub, Missing: []int{m.hub}, Own: true, Err: errAbsent}
	}
	over := m.told(f)
	if !back {
		told := over
		m.flush([]*mail.Sending{m.send(mail.SubsetNews, m.hub, &told)}, nil)
	}
	switch {
	case !back && late:
		return m.verdict(f)
	case !taken && own:
		var sent []*mail.Sending
		for _, w := range m.ranks {
			if w != m.self {
				n := over
				sent = append(sent, m.send(mail.SubsetOffers, w, &n))
			}
		}
		m.flush(nil, sent)
	}
	return f
}

func isDone(s *mail.Sending) bool {
	select {
	case <-s.Done():
		return true
	default:
		return false
	}
}

// verdict is what the hub says to a rank whose time has ended: it knows which ranks are missing.
func (m *meeting) verdict(f *call.Fault) *call.Fault {
	limit, cancel := lived.Within(context.WithoutCancel(m.ctx), verdictGrace)
	defer cancel()
	for m.outcome == nil {
		if _, _, g := m.next(limit); g != nil {
			if m.c.rank.Fate.Cause() != nil {
				return g
			}
			return f
		}
	}
	return m.outcome
}

// offered waits until the memory of this host is offered.
func (m *meeting) offered() (off uint64, f *call.Fault) {
	for m.outcome == nil {
		if n := m.memory; n != nil && n.id == m.id { // perhaps it came before all had come, as far as this rank knew
			m.memory = nil
			return n.off, nil
		}
		if _, _, f := m.next(m.ctx); f != nil {
			return 0, f
		}
	}
	return 0, m.outcome
}

// conclude has all ranks know whether all have made the Comm. f is why this one has not, nil if it has.
func (m *meeting) conclude(f *call.Fault) *call.Fault {
	if m.self != m.hub {
		return m.hear(f)
	}
	for f == nil && m.outcome == nil && m.made < len(m.ranks)-1 {
		_, _, f = m.next(m.ctx)
	}
	switch {
	case f != nil:
		return m.end(f)
	case m.outcome != nil:
		return m.end(m.outcome)
	}
	var sent []*mail.Sending
	for w := range m.known {
		sent = append(sent, m.send(mail.SubsetNews, w, &note{what: noteDone, id: m.id}))
	}
	for _, s := range sent { // if that takes longer than this rank has, they are on their way all the same
		select {
		case <-s.Done():
		case <-m.ctx.Done():
		}
	}
	return nil
}

// hear tells the hub whether this rank has made its end, and waits for its word, whatever becomes
// of this rank's context: the others may have the Comm by then.
func (m *meeting) hear(f *call.Fault) *call.Fault {
	if m.outcome == nil {
		mine := &note{what: noteMade, id: m.id}
		if f != nil {
			over := m.told(f)
			mine = &over
			mine.what = noteMade
		}
		m.send(mail.SubsetNews, m.hub, mine)
	}
	for m.outcome == nil {
		n, _, g := m.next(context.WithoutCancel(m.ctx))
		switch {
		case g != nil:
			return g
		case n.what == noteDone && n.id == m.id:
			return nil
		}
	}
	if f != nil && m.outcome.Peer == m.self {
		return f
	}
	return m.outcome
}

// close ends the attempt. Memory that has been taken by then, and that nobody wants, is given back;
// a rank whose hello has been taken is answered.
func (m *meeting) close() {
	b := &m.box
	for l := range b.open {
		if l.in != nil {
			l.in.Cancel()
		}
	}
	m.keep(nil)
	job := m.c.rank.Site.Job
	if len(b.open) == 0 || !job.TryHold() {
		return
	}
	go func() {
		defer job.Leave()
		for len(b.open) > 0 {
			l := <-b.came
			switch f := b.took(l); {
			case f != nil || l.out != nil:
			case l.note.what == noteMemory:
				m.keep(&l.note)
			case l.note.what == noteHello && m.over != nil: // its payload took longer than the hub has waited
				m.refuse(l.in.Source(), &l.note)
			}
		}
		m.keep(nil)
	}()
}
