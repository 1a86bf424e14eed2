package scale

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// message is a frame on its way.
type message struct {
	at       time.Duration // when it arrives
	number   uint64        // in which order messages were sent, of those that arrive at one time
	to, from int32
	event    int32 // which event it carries; less than 0: what else comes due at host to
}

// before reports whether m comes before o.
func (m *message) before(o *message) bool {
	return m.at < o.at || m.at == o.at && m.number < o.number
}

// calendar hands out messages in the order in which they arrive (a binary heap: container/heap
// would allocate each).
type calendar struct {
	heap   []message
	number uint64
}

func (c *calendar) add(m message) {
	m.number = c.number
	c.number++
	c.heap = append(c.heap, m)
	for i := len(c.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !c.heap[i].before(&c.heap[up]) {
			return
		}
		c.heap[i], c.heap[up] = c.heap[up], c.heap[i]
		i = up
	}
}

func (c *calendar) next() (m message, ok bool) {
	if len(c.heap) == 0 {
		return m, false
	}
	m = c.heap[0]
	last := len(c.heap) - 1
	c.heap[0] = c.heap[last]
	c.heap = c.heap[:last]
	for i := 0; ; {
		least := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < last && c.heap[down].before(&c.heap[least]) {
				least = down
			}
		}
		if least == i {
			return m, true
		}
		c.heap[i], c.heap[least] = c.heap[least], c.heap[i]
		i = least
	}
}

// network is what a message costs.
type network struct {
	near, far time.Duration // from host to host within a group, and across
	group     int           // hosts in a group
	perSecond float64       // bytes
	handle    time.Duration // for a process to take a frame in and send it on
	handshake time.Duration // of a connection, for each of its ends
	lateOne   int           // one message in so many is late; 0: none
	lateBy    time.Duration

	cores int           // that all processes of the job share, which take turns; 0: each process has its own
	look  time.Duration // for one of them to look around, which it does each tick
}

// slingshot is Aurora's: 2 us in a group of 64 hosts, 3.5 across, 25 GB/s. That a process takes 10
// us for a frame is the time of a wakeup and two system calls.
var slingshot = network{near: 2 * time.Microsecond, far: 3500 * time.Nanosecond, group: 64, perSecond: 25e9, handle: 10 * time.Microsecond, handshake: 200 * time.Microsecond}

// late is slingshot, where one message in a hundred is late by a second.
func (n network) late() network {
	n.lateOne, n.lateBy = 100, time.Second
	return n
}

// wire is how long so many bytes take from one host to another.
func (n *network) wire(from, to, bytes int, random *rand.Rand) time.Duration {
	d := n.far
	if from/n.group == to/n.group {
		d = n.near
	}
	if n.lateOne > 0 && random.IntN(n.lateOne) == 0 {
		d += n.lateBy
	}
	return d + time.Duration(float64(bytes)/n.perSecond*1e9)
}

// processors are those that all processes of a job share, by when each has done what it has to do; none: each process has its own.
type processors []time.Duration

// run is when a process that is ready at that time has done what takes so long: it waits for the first processor that is free.
func (p processors) run(ready, takes time.Duration) time.Duration {
	if len(p) == 0 {
		return ready + takes
	}
	first := 0
	for i := range p {
		if p[i] < p[first] {
			first = i
		}
	}
	p[first] = max(p[first], ready) + takes
	return p[first]
}

func TestProcessors(t *testing.T) {
	require.Equal(t, 7*time.Second, processors(nil).run(3*time.Second, 4*time.Second))
	p := make(processors, 2)
	for i, want := range []time.Duration{1, 1, 2, 2, 3} {
		require.Equal(t, want*time.Second, p.run(0, time.Second), "%d", i)
	}
	require.Equal(t, 11*time.Second, p.run(10*time.Second, time.Second), "none is busy then")
}

func TestCalendar(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	var c calendar
	for range 1000 {
		c.add(message{at: time.Duration(random.IntN(100))})
	}
	last, count := message{}, 0
	for m, ok := c.next(); ok; m, ok = c.next() {
		require.True(t, count == 0 || last.before(&m))
		last = m
		count++
	}
	require.Equal(t, 1000, count)
}

func TestWire(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	n := slingshot
	require.Equal(t, 2*time.Microsecond+10*time.Nanosecond, n.wire(0, 63, 250, random))
	require.Equal(t, 3510*time.Nanosecond, n.wire(63, 64, 250, random))
	late, l := 0, n.late()
	for range 10_000 {
		if l.wire(0, 1, 0, random) > time.Second {
			late++
		}
	}
	require.InDelta(t, 100, late, 40)
}
