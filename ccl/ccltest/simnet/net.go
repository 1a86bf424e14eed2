// Package simnet is a network in memory with hosts on it. Connections are delayed, reset and cut, and hosts stand
// still and end, in the virtual time of a bubble of testing/synctest. All chances follow from a seed. What Go's
// scheduler chooses does not: a seed gives the plan, and nearly the schedule.
package simnet

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Link is how the way from one host to another is.
type Link struct {
	// Delay is how long a packet takes, and Jitter by how much longer at random.
	Delay, Jitter time.Duration
	// Rate is how many bytes a second a connection moves; 0: no limit.
	Rate float64
	// Window is how many bytes may be under way or unread; 0: 256 KiB.
	Window int
	// Loss is how likely a packet is to be lost. It comes once it has been sent again.
	Loss float64
	// Grid has packets come at multiples of it alone, if it is not zero: then much happens at one instant.
	Grid time.Duration
}

// again is after how long TCP sends again what has been lost (RFC 6298: at least a second; Linux: 200 ms).
const again = 200 * time.Millisecond

// Net is a network.
type Net struct {
	seed  uint64
	link  Link
	began time.Time

	mu    sync.Mutex
	hosts []*Host
	cut   map[way]bool // black holes
	apart map[way]bool // no route
	conns []*conn      // one of each pair, in the order in which they were made
	told  []string     // by Note, and what befell hosts and connections
	log   []event      // the last events, of n
	n     int
	sum   uint64 // of all
}

// way is from one host to another, by number.
type way struct{ from, to int }

// logMost is how many events a transcript has.
const logMost = 400

// New makes a network of n hosts, whose links are as link says.
func New(seed uint64, n int, link Link) *Net {
	if link.Window == 0 {
		link.Window = 256 << 10
	}
	net := &Net{seed: seed, link: link, began: time.Now(), cut: map[way]bool{}, apart: map[way]bool{}}
	for i := range n {
		net.hosts = append(net.hosts, newHost(net, i))
	}
	return net
}

// Host is the i-th.
func (n *Net) Host(i int) *Host { return n.hosts[i] }

// Size is how many hosts there are.
func (n *Net) Size() int { return len(n.hosts) }

// event is one of the transcript: a line, or what a connection has sent.
type event struct {
	at   time.Duration
	line string
	of   *conn // nil: line is all
	n    int   // bytes
}

func (e *event) String() string {
	switch {
	case e.of == nil:
		return fmt.Sprintf("%12v %s", e.at, e.line)
	case e.n > 0:
		return fmt.Sprintf("%12v %s %v %d", e.at, e.line, e.of, e.n)
	}
	return fmt.Sprintf("%12v %s %v", e.at, e.line, e.of)
}

// tell adds what befell hosts, or a program's line, to the transcript. n.mu is held.
func (n *Net) tell(format string, args ...any) {
	e := event{at: time.Since(n.began), line: fmt.Sprintf(format, args...)}
	n.told = append(n.told, e.String())
	n.note(e)
}

// sent adds what c has sent. n.mu is held.
func (n *Net) sent(what string, c *conn, bytes int) {
	n.note(event{time.Since(n.began), what, c, bytes})
}

// note adds an event. n.mu is held.
func (n *Net) note(e event) {
	h := uint64(e.at) ^ uint64(e.n)<<40 ^ uint64(len(e.line))<<56
	if e.of != nil {
		h = h*0x9e3779b97f4a7c15 ^ uint64(e.of.host.number)<<32 ^ uint64(e.of.peer.host.number)
	}
	h *= 0x9e3779b97f4a7c15
	n.sum += h ^ h>>29
	if len(n.log) < logMost {
		n.log = append(n.log, e)
	} else {
		n.log[n.n%logMost] = e
	}
	n.n++
}

// Note adds a line to the transcript.
func (n *Net) Note(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell(format, args...)
}

// Transcript is what befell hosts and connections, and then the last events of all kinds.
func (n *Net) Transcript() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	k := 0
	if n.n > logMost {
		k = n.n % logMost
	}
	list := append(slices.Clone(n.told), "the last events:")
	for _, e := range slices.Concat(n.log[k:], n.log[:k]) {
		list = append(list, e.String())
	}
	return list
}

// Sum is a hash of all events, with their times, and how many there were. The order of those of one instant is not
// in it.
func (n *Net) Sum() (uint64, int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.sum, n.n
}

// Cut makes the way from host a to host b a black hole, or whole again. What is sent meanwhile comes then: TCP sends
// it again.
func (n *Net) Cut(a, b int, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell("cut %d>%d %v", a, b, cut)
	n.cutWay(way{a, b}, cut)
}

func (n *Net) cutWay(w way, cut bool) {
	if cut {
		n.cut[w] = true
		return
	}
	delete(n.cut, w)
	for _, c := range n.conns {
		c.in.deliver()
		c.peer.in.deliver()
	}
}

// CutOff cuts host a off from all others, or no longer.
func (n *Net) CutOff(a int, cut bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell("cut off %d %v", a, cut)
	n.cutOff(a, cut)
}

func (n *Net) cutOff(a int, cut bool) {
	for b := range n.hosts {
		if b != a {
			n.cutWay(way{a, b}, cut)
			n.cutWay(way{b, a}, cut)
		}
	}
}

// Unroute leaves hosts a and b without a route to each other: a process that dials is told so at once.
func (n *Net) Unroute(a, b int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tell("no route %d, %d", a, b)
	n.apart[way{a, b}], n.apart[way{b, a}] = true, true
}

// open are the connections between hosts a and b. n.mu is held.
func (n *Net) open(a, b int) (open []*conn) {
	for _, c := range n.conns {
		if c.between(a, b) && !c.closed && !c.peer.closed && c.failed == nil {
			open = append(open, c)
		}
	}
	return open
}

// Open counts the connections between hosts a and b.
func (n *Net) Open(a, b int) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.open(a, b))
}

// Reset resets a connection between hosts a and b, the i-th of those that are open, modulo their number, or the last
// one made if i is -1: what is under way is lost. It returns false where there is none.
func (n *Net) Reset(a, b, i int) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	open := n.open(a, b)
	if len(open) == 0 {
		return false
	}
	if i < 0 {
		i = len(open) - 1
	}
	c := open[i%len(open)]
	n.tell("reset %v", c)
	c.reset()
	c.peer.reset()
	return true
}

// random is the source of chances that has that name: what others draw does not change it.
func (n *Net) random(name uint64) *rand.Rand { return rand.New(rand.NewPCG(n.seed, name)) }
