package scale

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/shrink"
	"github.com/goccl/goccl/internal/agree"
	"github.com/goccl/goccl/internal/algo"
)

const hostsOfTree = 16 // that speak through one other, as in package shrink

// agreement is a Shrink. Of each host the rank that speaks for the others is real, and so is one of those that speak through it:
// what that says each of the others says, too.
type agreement struct {
	net     network
	random  *rand.Rand
	topo    algo.Topology
	tree    agree.Tree
	lost    []bool // by rank
	gone    int
	shared  processors
	parties []*agree.Party // by rank; nil: one that is like the real one of its host
	alike   []int          // by rank, of the real one of a host: so many are like it, and follow it
	free    []time.Duration
	links   map[[2]int]time.Duration // between hosts: nothing comes before what was sent last
	letters []agree.Notice
	calendar
	agreed
}

// agreed is what a Shrink comes to.
type agreed struct {
	done        time.Duration // until the last rank knows that all know
	messages    int
	bytes       int
	lead, most  int           // bytes out of the lead, and out of the rank that sends most
	connections int           // of the lead with other hosts
	widest      int           // of the rank that has most
	computed    time.Duration // what the lead's own code takes, on this machine
}

// newAgreement is a Shrink of so many hosts, of which some ranks are lost, the first not among them.
func newAgreement(hosts, lost int, tree bool, net network) *agreement {
	return newAgreementOf(hosts, perHost, lost, tree, net)
}

// newAgreementOf is newAgreement with so many ranks on each host.
func newAgreementOf(hosts, perHost, lost int, tree bool, net network) *agreement {
	n := hosts * perHost
	a := &agreement{net: net, shared: make(processors, net.cores), random: rand.New(rand.NewPCG(3, 3)), topo: algo.Blocks(hosts, perHost), lost: make([]bool, n), gone: lost,
		parties: make([]*agree.Party, n), alike: make([]int, n), free: make([]time.Duration, n), links: map[[2]int]time.Duration{}}
	if tree {
		a.tree = shrink.Tree{Topo: a.topo, Width: hostsOfTree}
	}
	for _, r := range a.random.Perm(n - 1)[:lost] {
		a.lost[r+1] = true
	}
	asks := agree.Asks{Make: func(uint64, []int32) error { return nil }, Tree: a.tree}
	for h := range hosts {
		first, second := -1, -1
		for l := range perHost {
			switch r := h*perHost + l; {
			case a.lost[r]:
			case first < 0:
				first, a.parties[r] = r, agree.New(r, n, asks)
			case second < 0:
				second, a.parties[r] = r, agree.New(r, n, asks)
			default:
				a.alike[second]++
			}
		}
	}
	return a
}

// run goes through the agreement in the order in which messages come.
func (a *agreement) run(t *testing.T) agreed {
	ends := map[int]int{}
	for r, p := range a.parties {
		if p == nil {
			continue
		}
		p.Look(func(x int) bool { return a.lost[x] })
		if up := p.Up(); up >= 0 && a.topo.Node(up) != a.topo.Node(r) {
			for range 1 + a.alike[r]*btoi(a.tree == nil) {
				ends[up]++
			}
			ends[r]++
			a.links[[2]int{r, up}] = a.connect(ends[up]) + roundTrips*2*a.net.far
		}
	}
	a.connections = ends[0]
	for _, k := range ends {
		a.widest = max(a.widest, k)
	}
	sent := make([]int, len(a.parties))
	for r, p := range a.parties {
		if p != nil {
			a.send(r, 0, sent)
		}
	}
	for m, ok := a.next(); ok; m, ok = a.next() {
		p := a.parties[m.to]
		now := a.turn(int(m.to), max(m.at, a.free[m.to]), a.net.handle)
		began := time.Now()
		p.Hear(int(m.from), a.letters[m.event])
		if m.to == 0 {
			a.computed += time.Since(began)
		}
		a.free[m.to] = now
		a.send(int(m.to), now, sent)
		if p.End != agree.Open {
			a.done = max(a.done, now)
		}
	}
	for _, b := range sent {
		a.most = max(a.most, b)
	}
	a.lead = sent[0]
	for r, p := range a.parties {
		if p != nil {
			require.Equal(t, agree.Agreed, p.End, "rank %d", r)
			require.Len(t, p.Ranks, len(a.parties)-a.gone)
			require.Equal(t, a.parties[0].Ballot(), p.Ballot())
		}
	}
	return a.agreed
}

// connect is when a connection is made that is the nth of its accepting end: that makes one after the other, where both do not share
// their processors with all others.
func (a *agreement) connect(nth int) time.Duration {
	if len(a.shared) == 0 {
		return time.Duration(nth) * a.net.handshake
	}
	return max(a.shared.run(0, a.net.handshake), a.shared.run(0, a.net.handshake))
}

// turn is when rank r has done what takes so long, and those that are like it want a processor as well.
func (a *agreement) turn(r int, ready, takes time.Duration) time.Duration {
	done := a.shared.run(ready, takes)
	if len(a.shared) > 0 {
		for range a.alike[r] {
			a.shared.run(ready, takes)
		}
	}
	return done
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// send sends what rank r has to say, one letter after the other.
func (a *agreement) send(r int, now time.Duration, sent []int) {
	p := a.parties[r]
	var last *agree.Notice
	bytes := 0
	for i := range p.Post {
		l := &p.Post[i]
		if last == nil || !l.Same(last) {
			last, bytes = &l.Notice, shrink.Bytes(&l.Notice)
			a.letters = append(a.letters, l.Notice)
		}
		inside := a.topo.Node(r) == a.topo.Node(l.To)
		now = a.turn(r, now, max(a.net.handle, time.Duration(float64(bytes)/a.net.perSecond*1e9)))
		a.messages += 1 + a.alike[r]
		a.bytes += bytes * (1 + a.alike[r])
		sent[r] += bytes
		if a.parties[l.To] == nil { // it is like the real one, which hears the same
			continue
		}
		for k := range 1 + a.alike[r] {
			there := now
			if !inside {
				link := [2]int{r, l.To}
				there = now + a.net.wire(a.topo.Node(r), a.topo.Node(l.To), bytes, a.random)
				if k == 0 {
					there = max(there, a.links[link])
					a.links[link] = there
				}
			}
			a.add(message{at: there, to: int32(l.To), from: int32(a.like(r, k)), event: int32(len(a.letters) - 1)})
		}
	}
	p.Post = p.Post[:0]
	a.free[r] = max(a.free[r], now)
}

// like is the k-th of the ranks that rank r stands for, the 0th of which it is itself.
func (a *agreement) like(r, k int) int {
	for ; k > 0; k-- {
		for r++; a.lost[r]; r++ {
		}
	}
	return r
}

// TestShrink has all ranks of a job but one, or but several, agree on those that are left.
func TestShrink(t *testing.T) {
	n := *hosts * perHost
	t.Log("| ranks | ranks lost | messages | over after | messages | bytes | out of the lead | most out of a rank | connections of the lead | most of a rank | the lead computes |")
	for _, k := range []int{1, 100} {
		for _, late := range []bool{false, true} {
			net, name := slingshot, "in time"
			if late {
				net, name = net.late(), "1 % late by 1 s"
			}
			r := newAgreement(*hosts, k, true, net).run(t)
			t.Logf("| %d | %d | %s | %v | %d | %.1f MB | %.0f kB | %.0f kB | %d | %d | %v |", n, k, name, r.done.Round(10*time.Microsecond),
				r.messages, float64(r.bytes)/1e6, float64(r.lead)/1e3, float64(r.most)/1e3, r.connections, r.widest, r.computed.Round(time.Millisecond))
			require.Equal(t, 7*(n-k-1), r.messages, "three round trips, a word that the one above has come")
			require.LessOrEqual(t, r.connections, 2*hostsOfTree)
			require.LessOrEqual(t, r.most, 1<<20)
			if !late {
				require.Less(t, r.done, 100*time.Millisecond)
			}
		}
	}
}

// TestShrinkFlat is the same in a job so small that each rank speaks with the lead itself.
func TestShrinkFlat(t *testing.T) {
	const few = 5
	r := newAgreement(few, 0, false, slingshot).run(t)
	require.Equal(t, 7*(few*perHost-1), r.messages)
	require.Equal(t, (few-1)*perHost, r.connections)
}
