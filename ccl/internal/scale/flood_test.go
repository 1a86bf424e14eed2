package scale

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/internal/algo"
)

const (
	perHost    = 12
	eventBytes = control.FrameHead + event.Wire
	ringAfter  = 10 * time.Millisecond // before hosts close a gap: see package plane
	roundTrips = 4                     // of a new connection, handshake and all
	deciders   = 4                     // so many of the lowest hosts keep proposals: one of them is there
)

// link is one end of a control connection.
type link struct {
	to   int32
	free time.Duration // when what was sent last arrives: nothing comes before it
}

// host is what the process that leads a host holds.
type host struct {
	links    []link
	passed   control.Flood
	free     time.Duration // when it has done with what has come
	gone     map[int]bool  // hosts that are said to be lost
	proposed event.Proposals
}

// flood is a job whose hosts hear of losses.
type flood struct {
	net      network
	random   *rand.Rand
	topo     algo.Topology
	hosts    []host
	lost     []bool
	calendar calendar
	shared   processors
	listen   listeners
	events   []event.Event
	here     [][]uint64 // by event, the hosts that have it, as bits
	order    [deciders]event.Sequencer
	decided  map[int]bool // the hosts whose loss is

	settle   time.Duration // after which a host believes what it has proposed: plane.SettleFor
	heard    map[int]int   // by host that is lost, how many know that it is decided
	result   outcome
	messages int
}

// outcome is what a flood comes to.
type outcome struct {
	all      time.Duration // until all hosts have heard of all losses
	messages int
	bytes    int
	most     int           // messages that the busiest host has sent
	waited   time.Duration // the longest that a frame lay before a process came to it
	alone    int           // proposals that were believed undecided
}

// newFlood is a job on so many hosts. Some of the lowest are there to decide.
func newFlood(hosts int, net network) *flood { return newFloodOf(hosts, perHost, net) }

// newFloodOf is newFlood with so many ranks on each host.
func newFloodOf(hosts, perHost int, net network) *flood {
	f := &flood{net: net, random: rand.New(rand.NewPCG(7, 7)), topo: algo.Blocks(hosts, perHost), hosts: make([]host, hosts), shared: make(processors, net.cores),
		lost: make([]bool, hosts), decided: map[int]bool{}, heard: map[int]int{}, settle: plane.SettleFor}
	for h := range f.hosts {
		for _, o := range f.neighbors(h) {
			f.hosts[h].links = append(f.hosts[h].links, link{to: int32(o)})
		}
	}
	return f
}

// neighbors lists the hosts that h connects with, of those that it does not believe to be lost.
func (f *flood) neighbors(h int) []int {
	world := gone.Ranks{Topo: f.topo}
	for o := range f.hosts[h].gone {
		world.SetLead(o, f.topo.Locals(o), gone.Lost)
	}
	return world.Neighbors(h)
}

// lose ends so many hosts at once, and runs until nothing more is on its way. Those beside them see
// the end of their connections.
func (f *flood) lose(k int) outcome {
	for _, h := range f.random.Perm(len(f.hosts) - deciders)[:k] {
		f.lost[h+deciders] = true
	}
	if k > 1 { // the one that decides is among them
		f.lost[0], f.lost[slices.Index(f.lost, true)] = true, false
	}
	sent := make([]int, len(f.hosts))
	for h := range f.hosts {
		if !f.lost[h] {
			continue
		}
		for _, l := range f.hosts[h].links {
			if !f.lost[l.to] {
				f.calendar.add(message{at: f.net.wire(h, int(l.to), 0, f.random), to: l.to, from: int32(h), event: -1})
			}
		}
	}
	f.listenAll()
	for m, ok := f.calendar.next(); ok; m, ok = f.calendar.next() {
		h := &f.hosts[m.to]
		if f.lost[m.to] {
			continue
		}
		if m.event == looks {
			f.look(m)
			continue
		}
		f.result.waited = max(f.result.waited, h.free-m.at)
		now := f.shared.run(max(m.at, h.free), f.net.handle)
		h.free = now
		before := f.messages
		switch {
		case m.event >= 0:
			f.receive(int(m.to), int(m.from), m.event, now)
		case m.event == -1:
			f.propose(int(m.to), int(m.from), now)
		case m.event == -2:
			f.closeGap(int(m.to), now)
		case m.event == -3:
			f.expire(int(m.to), now)
		}
		sent[m.to] += f.messages - before
	}
	f.result.messages, f.result.bytes, f.result.most = f.messages, f.messages*eventBytes, slices.Max(sent)
	return f.result
}

// propose has host h say that host o is lost, whose connection has ended. It is what Site.Lost and
// Post do.
func (f *flood) propose(h, o int, now time.Duration) {
	e := event.New(0, call.RankLost, f.topo.Rank(o, 0), -1, h, errors.New("its process has ended, or its host cannot be reached"))
	e.Origin, e.Stage, e.Loss = int32(f.topo.Rank(h, 0)), event.Proposed, event.Ended
	f.hosts[h].passed.NumberEvent(&e)
	f.hosts[h].proposed.Add(e, now+f.settle)
	f.calendar.add(message{at: now + plane.SettleFor, to: int32(h), event: -3})
	f.handle(h, -1, f.add(e), now)
}

// add makes e one of the events.
func (f *flood) add(e event.Event) int32 {
	f.events = append(f.events, e)
	f.here = append(f.here, make([]uint64, (len(f.hosts)+63)/64))
	return int32(len(f.events) - 1)
}

func (f *flood) has(h int, e int32) bool { return f.here[e][h/64]>>(h%64)&1 != 0 }

// receive is what a host does with an event that came.
func (f *flood) receive(h, from int, e int32, now time.Duration) {
	if !f.has(h, e) {
		f.handle(h, from, e, now)
	} else if _, first := f.hosts[h].passed.Event(&f.events[e], nil); first { // which agree
		panic("an event had come and had not")
	}
}

// handle is what a host does with an event that is new to it: it passes it on, notes who is gone,
// and decides if it is the one.
func (f *flood) handle(h, from int, e int32, now time.Duration) {
	if _, first := f.hosts[h].passed.Event(&f.events[e], nil); !first {
		panic("an event that is new had come")
	}
	f.here[e][h/64] |= 1 << (h % 64)
	if h < deciders {
		f.order[h].Remember(&f.events[e])
	}
	for i := range f.hosts[h].links {
		if l := &f.hosts[h].links[i]; int(l.to) != from {
			f.send(h, l, e, now)
		}
	}
	o := f.topo.Node(int(f.events[e].Peer))
	if !f.hosts[h].gone[o] {
		if f.hosts[h].gone == nil {
			f.hosts[h].gone = map[int]bool{}
		}
		f.hosts[h].gone[o] = true
		f.calendar.add(message{at: now + ringAfter, to: int32(h), event: -2})
	}
	if f.events[e].Stage != event.Proposed {
		f.tell(h, now)
		f.heard[o]++
		if f.heard[o] <= len(f.hosts) {
			f.result.all = max(f.result.all, now)
		}
	}
	f.decide(h, now)
}

// decide is what the lead of the lowest host does.
func (f *flood) decide(h int, now time.Duration) {
	for i := range h {
		if !f.hosts[h].gone[i] {
			return
		}
	}
	if h >= deciders {
		return
	}
	for f.order[h].Prune() > 0 {
		d, ok := f.order[h].Next(now)
		if !ok {
			return
		}
		f.decided[f.topo.Node(int(d.Peer))] = true
		f.handle(h, -1, f.add(d), now)
	}
}

// send puts an event on a link.
func (f *flood) send(h int, l *link, e int32, now time.Duration) {
	f.messages++
	if f.lost[l.to] {
		return
	}
	l.free = max(l.free, now+f.net.wire(h, int(l.to), eventBytes, f.random))
	f.calendar.add(message{at: l.free, to: l.to, from: int32(h), event: e})
}

// closeGap connects host h with those that are beside it now, and tells them what it knows.
func (f *flood) closeGap(h int, now time.Duration) {
	for _, o := range f.neighbors(h) {
		if slices.ContainsFunc(f.hosts[h].links, func(l link) bool { return int(l.to) == o }) {
			continue
		}
		there := now + roundTrips*2*f.net.far
		f.join(h, o, there)
		if !f.lost[o] {
			f.join(o, h, there)
		}
	}
}

// join adds a link from h to o, over which h tells what it knows.
func (f *flood) join(h, o int, at time.Duration) {
	f.hosts[h].links = append(f.hosts[h].links, link{to: int32(o)})
	l := &f.hosts[h].links[len(f.hosts[h].links)-1]
	for e := range f.events {
		if f.has(h, int32(e)) {
			f.send(h, l, int32(e), at)
		}
	}
}

// expire has host h believe what it has proposed and nobody has decided.
func (f *flood) expire(h int, now time.Duration) {
	for _, e := range f.hosts[h].proposed.Due(now, func(e *event.Event) bool {
		for i := range f.events {
			if d := &f.events[i]; d.Stage != event.Proposed && d.Peer == e.Peer && f.has(h, int32(i)) {
				return true
			}
		}
		return false
	}) {
		f.result.alone++
		f.handle(h, -1, f.add(e), now)
	}
}

// losses are the cases of the table.
var losses = []struct {
	lost int
	late bool
}{{1, false}, {1, true}, {100, false}, {100, true}}

// TestFlood ends hosts of a job. All others hear of all losses, and none is kept so long from its
// frames that those beside it would give it up.
func TestFlood(t *testing.T) {
	t.Log("| ranks | hosts lost | messages | heard by all after | messages | bytes | most from one host | longest wait of a frame | believed undecided |")
	for _, tc := range losses {
		net, name := slingshot, "in time"
		if tc.late {
			net, name = net.late(), "1 % late by 1 s"
		}
		k := min(tc.lost, *hosts/40)
		t.Run(fmt.Sprintf("%d lost, %s", k, name), func(t *testing.T) {
			f := newFlood(*hosts, net)
			r := f.lose(k)
			require.Len(t, f.heard, k)
			for h := range *hosts {
				if f.lost[h] {
					require.True(t, f.decided[h], "host %d", h)
					require.GreaterOrEqual(t, f.heard[h], *hosts-k, "hosts that heard of host %d", h)
				}
			}
			t.Logf("| %d | %d | %s | %v | %d | %.1f MB | %d | %v | %d |", *hosts*perHost, k, name,
				r.all.Round(10*time.Microsecond), r.messages, float64(r.bytes)/1e6, r.most, r.waited.Round(10*time.Microsecond), r.alone)
			require.Less(t, plane.BeatEvery+r.waited+net.lateBy, 5*time.Second, "a host would be given up that only has much to do")
		})
	}
}

// TestAlone shows when hosts believe a proposal undecided, where messages are late by a second: only because that is longer than
// they wait. All losses are heard all the same.
func TestAlone(t *testing.T) {
	const hosts, lost = 200, 20
	for _, tc := range []struct {
		name   string
		settle time.Duration
		alone  bool
	}{{"as in the engine", plane.SettleFor, true}, {"longer than any is late", 20 * time.Second, false}} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFlood(hosts, slingshot.late())
			f.settle = tc.settle
			r := f.lose(lost)
			require.Len(t, f.heard, lost)
			require.Equal(t, tc.alone, r.alone > 0, "%d proposals", r.alone)
			t.Logf("%d proposals are believed undecided, all heard after %v", r.alone, r.all)
		})
	}
}
