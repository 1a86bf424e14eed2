// Package simulate runs the schedules of collectives in virtual time, on a machine
// whose latency and bandwidth are known: what a fit of measured times should find.
package simulate

import (
	"container/heap"
	"errors"
	"math"
	"math/rand/v2"
)

// Machine is what ranks run on. Times are in microseconds, sizes in bytes.
type Machine struct {
	Ranks, PerNode int

	// Alpha is the latency of a message between nodes, Beta its time per byte: a node
	// has one link each way, which its ranks share.
	Alpha, Beta float64
	// Inside, in a node, where nothing is shared.
	InsideAlpha, InsideBeta float64

	// Messages from Switch bytes on are announced first, which costs Announce; smaller
	// ones are sent at once and copied at the end, which costs Copy per byte. 0: no
	// such thing.
	Switch, Announce, Copy float64

	// Jitter is the standard deviation of the logarithm of each message's time, and
	// Seed draws it.
	Jitter float64
	Seed   uint64
}

// Move is one message of a step: a part of the vector to or from Peer.
type Move struct {
	Peer  int
	Share float64 // of the vector
}

// Step is what a rank does at once.
type Step struct{ Send, Recv []Move }

// Schedule is one rank's part in a collective.
type Schedule struct {
	Steps int
	At    func(k int, st *Step)
}

// errStuck says that a schedule waits for a message that nobody sends.
var errStuck = errors.New("simulate: the schedules wait for each other for ever")

// Time is how long the last rank takes for a call on size bytes.
func (m *Machine) Time(size float64, schedule func(rank int) Schedule) (float64, error) {
	w := &world{Machine: m, size: size, rand: rand.New(rand.NewPCG(m.Seed, math.Float64bits(size))),
		link: make([]float64, (m.Ranks+m.PerNode-1)/m.PerNode)}
	w.players = make([]player, m.Ranks)
	for r := range w.players {
		w.players[r] = player{rank: r, schedule: schedule(r)}
		heap.Push(w, r)
	}
	return w.run()
}

// world is a call under way. It is a heap of the ranks that can go on, the earliest
// first, so that messages take the shared links in the order of their times.
type world struct {
	*Machine
	size    float64
	rand    *rand.Rand
	players []player
	ready   []int
	link    []float64 // when a node's link is free
}

type player struct {
	rank     int
	schedule Schedule
	step     int
	sent     bool
	recv     int // messages of this step that have come
	clock    float64
	latest   float64 // arrival in this step
	st       Step
	inbox    []inbox
}

// inbox is what has come from one peer and was not received yet.
type inbox struct {
	peer     int
	arrivals []float64
	waited   bool // the rank has stopped for it
}

// from is the inbox for peer. A rank has few peers.
func (p *player) from(peer int) *inbox {
	for i := range p.inbox {
		if p.inbox[i].peer == peer {
			return &p.inbox[i]
		}
	}
	p.inbox = append(p.inbox, inbox{peer: peer})
	return &p.inbox[len(p.inbox)-1]
}

func (w *world) Len() int           { return len(w.ready) }
func (w *world) Less(i, j int) bool { return w.players[w.ready[i]].clock < w.players[w.ready[j]].clock }
func (w *world) Swap(i, j int)      { w.ready[i], w.ready[j] = w.ready[j], w.ready[i] }
func (w *world) Push(x any)         { w.ready = append(w.ready, x.(int)) }
func (w *world) Pop() any {
	last := w.ready[len(w.ready)-1]
	w.ready = w.ready[:len(w.ready)-1]
	return last
}

func (w *world) run() (end float64, err error) {
	left := w.Ranks
	for w.Len() > 0 {
		p := &w.players[heap.Pop(w).(int)]
		if w.advance(p) {
			left--
			end = max(end, p.clock)
		}
	}
	if left > 0 {
		return 0, errStuck
	}
	return end, nil
}

// advance takes p through its next step, or to the message it has to wait for; it
// reports whether p is done.
func (w *world) advance(p *player) bool {
	if p.step == p.schedule.Steps {
		return true
	}
	if !p.sent {
		p.st.Send, p.st.Recv = p.st.Send[:0], p.st.Recv[:0]
		p.schedule.At(p.step, &p.st)
		p.sent, p.recv, p.latest = true, 0, p.clock
		for _, m := range p.st.Send {
			w.send(p, m)
		}
	}
	for p.recv < len(p.st.Recv) {
		in := p.from(p.st.Recv[p.recv].Peer)
		if len(in.arrivals) == 0 {
			in.waited = true
			return false
		}
		p.latest = max(p.latest, in.arrivals[0])
		in.arrivals = append(in.arrivals[:0], in.arrivals[1:]...)
		p.recv++
	}
	p.clock, p.step, p.sent = p.latest, p.step+1, false
	heap.Push(w, p.rank)
	return false
}

// send puts a message on its way. The sender goes on once its last byte has left.
func (w *world) send(p *player, m Move) {
	bytes := m.Share * w.size
	alpha, beta := w.InsideAlpha, w.InsideBeta
	from, to := p.rank/w.PerNode, m.Peer/w.PerNode
	if from != to {
		alpha, beta = w.Alpha, w.Beta
	}
	if w.Switch > 0 && bytes >= w.Switch {
		alpha += w.Announce
	} else {
		alpha += w.Copy * bytes
	}
	jitter := math.Exp(w.Jitter * w.rand.NormFloat64())
	start := p.clock
	if from != to {
		start = max(start, w.link[from])
		w.link[from] = start + bytes*beta*jitter
	}
	p.latest = max(p.latest, start+bytes*beta*jitter)
	in := w.players[m.Peer].from(p.rank)
	in.arrivals = append(in.arrivals, start+(alpha+bytes*beta)*jitter)
	if in.waited {
		in.waited = false
		heap.Push(w, m.Peer)
	}
}
