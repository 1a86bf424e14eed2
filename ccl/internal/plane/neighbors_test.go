package plane

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/auth"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// between is this process as the lead of host 1 of four with a rank each, and its neighbors: the connections with hosts 0, 2 and 3, and
// their other ends.
func between(t *testing.T) (s *Site, conns []*control.Conn, there []*auth.Stream) {
	t.Helper()
	j := EnterJob(t.Name(), 0)
	t.Cleanup(j.Leave)
	j.World.Topo = algo.Blocks(4, 1)
	s = j.Site(1)
	s.Here.Host, s.Here.Mine, s.Here.Procs = PrivateHost(), 1, []int{1}
	for _, h := range []int{0, 2, 3} {
		a, b := auth.Pipe()
		t.Cleanup(func() { a.Close(); b.Close() })
		conns, there = append(conns, &control.Conn{Stream: a, Host: h, First: h}), append(there, b)
	}
	t.Cleanup(func() { s.Near.Conns = nil })
	return s, conns, there
}

// eachFrame calls f for each frame that comes from a neighbor, until its end.
func eachFrame(from *auth.Stream, f func(kind byte, body []byte)) error {
	for buf := make([]byte, control.FrameMax); ; {
		kind, body, err := control.ReadFrame(from, buf)
		if err != nil {
			return err
		}
		f(kind, body)
	}
}

// decided is the n-th event that host 0 has decided, the failure of a Comm of that number.
func decided(n int) event.Event {
	e := event.New(uint64(n), call.Canceled, 0, 0, 0, nil)
	e.Number, e.Stage = uint64(n), event.Decided
	return e
}

// commsOf are the Comms of the next n events that come from a neighbor.
func commsOf(t *testing.T, from *auth.Stream, n int) (list []int) {
	t.Helper()
	buf := make([]byte, control.FrameMax)
	from.SetReadDeadline(time.Now().Add(20 * time.Second))
	for len(list) < n {
		kind, body, err := control.ReadFrame(from, buf)
		require.NoError(t, err, "after %v", list)
		var e event.Event
		if kind == control.FrameEvent && e.Decode(body) == nil {
			list = append(list, int(e.Comm))
		}
	}
	return list
}

// What has been decided first is passed on first, also where it comes from a neighbor that another one holds up, and what follows it
// comes from there meanwhile.
func TestEventsArePassedInTheirOrder(t *testing.T) {
	s, conns, there := between(t)
	s.Near.Conns = conns
	first, second := decided(1), decided(2)
	var all sync.WaitGroup
	all.Go(func() { s.receiveEvent(&first, conns[0]) })
	_, err := there[1].Read(make([]byte, 1)) // host 2 takes no more than this of what it is sent: that is waited for
	require.NoError(t, err)
	all.Go(func() {
		s.receiveEvent(&first, conns[1])
		s.receiveEvent(&second, conns[1])
	})
	require.Equal(t, []int{1, 2}, commsOf(t, there[2], 2))
	all.Wait()
	history := historyOf(s.Job)
	require.Len(t, history, 2)
	require.Equal(t, []uint64{1, 2}, []uint64{history[0].Comm, history[1].Comm})
}

// A host that connects while events come hears of all of them, in their order.
func TestNewNeighborHearsAllInOrder(t *testing.T) {
	const n = shm.RingSlots
	s, conns, there := between(t)
	var all sync.WaitGroup
	all.Go(func() {
		for i := range n {
			e := decided(1 + i)
			s.receiveEvent(&e, nil)
			if i%8 == 0 {
				runtime.Gosched()
			}
		}
	})
	all.Go(func() {
		for len(historyOf(s.Job)) < n/4 {
			runtime.Gosched()
		}
		assert.True(t, s.greet(conns[0], 0))
		s.Job.Life.Wg.Done() // nobody listens to it
		for more := true; more || len(historyOf(s.Job)) < n; time.Sleep(time.Millisecond) {
			more = s.Near.Flush()
		}
	})
	var want []int
	for i := range n {
		want = append(want, 1+i)
	}
	require.Equal(t, want, commsOf(t, there[0], n))
	all.Wait()
}
