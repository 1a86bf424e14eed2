package fit

import (
	"container/heap"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
)

// simulated is a machine on which the schedules of collectives run in virtual time, whose latency and bandwidth are known:
// what a fit of measured times should find. Times are in microseconds, sizes in bytes.
type simulated struct {
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

// scheduleOf is rank's part in an algorithm for AllReduce, or for Broadcast from rank 0, between n hosts.
func scheduleOf(kind op.Kind, name string, n int) func(rank int) algo.Schedule {
	return func(rank int) algo.Schedule {
		s, err := algo.Build(name, kind, algo.Flat(n), rank, 0)
		if err != nil {
			panic(err) // the test asks for what is not there
		}
		return s
	}
}

// errStuck says that a schedule waits for a message that nobody sends.
var errStuck = errors.New("the schedules wait for each other for ever")

// time is how long the last rank takes for a call on size bytes.
func (m *simulated) time(size float64, schedule func(rank int) algo.Schedule) (float64, error) {
	w := &world{simulated: m, size: size, rand: rand.New(rand.NewPCG(m.Seed, math.Float64bits(size))),
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
	*simulated
	size    float64
	rand    *rand.Rand
	players []player
	ready   []int
	link    []float64 // when a node's link is free
}

type player struct {
	rank     int
	schedule algo.Schedule
	step     int
	sent     bool
	recv     int // messages of this step that have come
	clock    float64
	latest   float64 // arrival in this step
	st       algo.Step
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
func (w *world) send(p *player, m algo.Move) {
	bytes := float64(m.Hi-m.Lo) / float64(p.schedule.Parts) * w.size
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

func quiet(n, perNode int) *simulated {
	return &simulated{Ranks: n, PerNode: perNode, Alpha: 5, Beta: 1e-4, InsideAlpha: 1, InsideBeta: 5e-5}
}

// Without jitter the times are those of the papers.
func TestTimes(t *testing.T) {
	for _, tc := range []struct {
		name   string
		n, per int
		size   float64
		kind   op.Kind
		want   float64
	}{
		{"ring", 8, 1, 8e6, op.AllReduce, 14 * (5 + 100)},
		{"doubling", 8, 1, 1e4, op.AllReduce, 3 * (5 + 1)},
		{"halving", 8, 1, 8e6, op.AllReduce, 6*5 + 2*7*100},
		{"tree", 8, 1, 1e4, op.Broadcast, 3 * (5 + 1)},
		{"ring", 1, 1, 1e4, op.AllReduce, 0},
		{"ring", 8, 8, 8e6, op.AllReduce, 14 * (1 + 50)},
		// Both ranks of a node send to the other node at once in the second step.
		{"doubling", 4, 2, 1e6, op.AllReduce, 1 + 50 + 5 + 2*100},
	} {
		got, err := quiet(tc.n, tc.per).time(tc.size, scheduleOf(tc.kind, tc.name, tc.n))
		require.NoError(t, err)
		require.InDelta(t, tc.want, got, 1e-6, "%+v", tc)
	}
}

func TestSwitch(t *testing.T) {
	m := quiet(2, 1)
	m.Switch, m.Announce, m.Copy = 1000, 7, 1e-3
	small, err := m.time(999, scheduleOf(op.AllReduce, "doubling", 2))
	require.NoError(t, err)
	require.InDelta(t, 5+0.999+0.0999, small, 1e-9)
	large, err := m.time(1000, scheduleOf(op.AllReduce, "doubling", 2))
	require.NoError(t, err)
	require.InDelta(t, 5+7+0.1, large, 1e-9)
}

// The same seed is the same machine on the same day.
func TestSeed(t *testing.T) {
	m := quiet(16, 1)
	m.Jitter = 0.1
	a, err := m.time(1e6, scheduleOf(op.AllReduce, "ring", 16))
	require.NoError(t, err)
	b, _ := m.time(1e6, scheduleOf(op.AllReduce, "ring", 16))
	require.Equal(t, a, b)
	m.Seed = 1
	c, _ := m.time(1e6, scheduleOf(op.AllReduce, "ring", 16))
	require.NotEqual(t, a, c)
}
