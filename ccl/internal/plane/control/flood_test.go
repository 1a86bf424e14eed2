package control

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/auth"
)

// hears and learns report whether a frame comes for the first time.
func hears(f *Flood, e event.Event) bool {
	_, first := f.Event(&e, nil)
	return first
}

func learns(f *Flood, s status.Status) bool {
	_, first := f.Status(&s, nil)
	return first
}

// An event is new once for each stage that it goes through.
func TestFloodOfEvents(t *testing.T) {
	var f Flood
	for i, tc := range []struct {
		e    event.Event
		want bool
	}{
		{event.Event{Origin: 1, Number: 1, Stage: event.Proposed}, true},
		{event.Event{Origin: 1, Number: 1, Stage: event.Proposed, Peer: 7}, false},
		{event.Event{Origin: 1, Number: 1, Stage: event.Decided}, true},
		{event.Event{Origin: 1, Number: 2, Stage: event.Proposed}, true},
		{event.Event{Origin: 2, Number: 1, Stage: event.Proposed}, true},
		{event.Event{Origin: 2, Number: 1, Stage: event.Proposed}, false},
		{event.Event{Origin: 2, Number: 4, Stage: event.Proposed}, true},
		{event.Event{Origin: 2, Number: 3, Stage: event.Proposed}, true},
		{event.Event{Origin: 2, Number: 2, Stage: event.Proposed}, true},
		{event.Event{Origin: 2, Number: 3, Stage: event.Proposed}, false},
	} {
		assert.Equal(t, tc.want, hears(&f, tc.e), "the %d. event", i)
	}
	assert.Equal(t, map[source][]run{{1, way(event.Proposed)}: {{1, 2}}, {1, way(event.Decided)}: {{1, 1}}, {2, way(event.Proposed)}: {{1, 4}}}, f.heard)
}

// An event that comes from several neighbors gets one place in the order of this host, and passes there, to the others.
func TestReceive(t *testing.T) {
	var f Flood
	var conns []*Conn
	var there []*auth.Stream
	for range 3 {
		a, b := auth.Pipe()
		defer a.Close()
		defer b.Close()
		conns, there = append(conns, &Conn{Stream: a}), append(there, b)
	}
	e := event.Event{Origin: 1, Number: 7, Stage: event.Decided, Code: uint8(event.NewLead)}
	require.True(t, f.Receive(&e, conns[0]))
	require.False(t, f.Receive(&e, conns[1]), "it waits for its place")
	on, first := f.Event(&e, nil)
	require.True(t, first)
	go on.To(conns)
	kind, _, err := ReadFrame(there[2], make([]byte, FrameMax))
	require.NoError(t, err)
	require.Equal(t, byte(FrameEvent), kind)
	require.Zero(t, conns[0].Stream.Unsent()+conns[1].Stream.Unsent(), "they have it")
	require.False(t, f.Receive(&e, conns[2]))
	require.False(t, hears(&f, e))
	require.Empty(t, f.taken)
	e.Stage = event.Proposed
	require.True(t, f.Receive(&e, conns[2]), "the proposal was another")
}

// A status is new by the number of its rank, whatever Comm it is of, and a brief unless another host has told the same lately.
func TestFloodOfStatuses(t *testing.T) {
	var f Flood
	for i, tc := range []struct {
		s    status.Status
		want bool
	}{
		{status.Status{Comm: 1, World: 1, Number: 5}, true},
		{status.Status{Comm: 1, World: 1, Number: 5}, false},
		{status.Status{Comm: 2, World: 1, Number: 5}, false},
		{status.Status{Comm: 1, World: 1, Number: 4}, true}, // of another Comm, say: what stands is for the Table to say
		{status.Status{Comm: 1, World: 2, Number: 5}, true},
		{status.Status{Comm: 1, World: 1, Number: 1 << 40}, true},
		{status.Status{Comm: 1, World: 1, Number: 5, Calls: 1, Hash: 7, Brief: true}, true}, // which has numbers of its own
		{status.Status{Comm: 1, World: 1, Number: 6, Calls: 1, Hash: 8, Brief: true}, true},
		{status.Status{Comm: 1, World: 3, Number: 1, Calls: 1, Hash: 7, Brief: true}, false},
		{status.Status{Comm: 2, World: 3, Number: 2, Calls: 1, Hash: 7, Brief: true}, true},
		{status.Status{Comm: 1, World: 3, Number: 1, Calls: 2, Hash: 7, Brief: true}, false},
	} {
		assert.Equal(t, tc.want, learns(&f, tc.s), "the %d. status", i)
	}
}

// What begins in a process has numbers from 1 on: those of events, of the statuses of each rank and of its briefs.
func TestNumbers(t *testing.T) {
	var f Flood
	for i := range uint64(3) {
		e, s, b, other := event.Event{Origin: 1}, status.Status{World: 1}, status.Status{World: 1, Brief: true}, status.Status{World: 2, Comm: i}
		f.NumberEvent(&e)
		f.NumberStatus(&s)
		f.NumberStatus(&b)
		f.NumberStatus(&other)
		assert.Equal(t, []uint64{i + 1, i + 1, i + 1, i + 1}, []uint64{e.Number, s.Number, b.Number, other.Number})
	}
}

// None is taken for new twice, and none that is new for one that has come, however many Comms all hosts of a job close at
// once, in whatever order their events come and over however many connections. What is kept of a source is bounded.
func TestFloodOfManyEvents(t *testing.T) {
	const origins, numbers, copies = 25, 400, 4
	random := rand.New(rand.NewPCG(1, 1))
	var events []event.Event
	for range copies {
		for o := range int32(origins) {
			for n := range uint64(numbers) {
				events = append(events, event.Event{Origin: o, Number: n + 1})
			}
		}
	}
	for i := range events { // an event is overtaken by a few of its source
		j := min(i+random.IntN(runsMost/2), len(events)-1)
		events[i], events[j] = events[j], events[i]
	}
	var f Flood
	come, most := map[event.Event]bool{}, 0
	for _, e := range events {
		if hears(&f, e) == come[e] {
			t.Fatalf("%d of %d: it had come: %v", e.Number, e.Origin, come[e])
		}
		come[e] = true
		most = max(most, len(f.heard[source{origin: e.Origin}]))
	}
	require.Greater(t, most, 1)
	for _, runs := range f.heard {
		require.Equal(t, []run{{1, numbers}}, runs)
	}
	for n := range uint64(10 * runsMost) { // every second of them never comes
		require.True(t, hears(&f, event.Event{Origin: origins, Number: 2 * n}))
		require.LessOrEqual(t, len(f.heard[source{origin: origins}]), runsMost)
	}
	require.True(t, hears(&f, event.Event{Origin: origins, Number: 20*runsMost - 3}), "it may still come")
	require.False(t, hears(&f, event.Event{Origin: origins, Number: 1}), "it comes no more")
}

// However many frames are under way at once, and however far one host is behind the others, every frame comes to every host, and each
// host passes it on at most once. The hosts make a ring, each beside the next two of it in either direction; each reads back from its board
// what it has taken in, when it has nothing else to do.
func TestFloodsEnd(t *testing.T) {
	const hosts, calls = 9, keptBriefs + runsMost // more than any memory of the last ones holds
	for _, tc := range []struct {
		name  string
		brief bool
	}{{"statuses", false}, {"briefs", true}} {
		t.Run(tc.name, func(t *testing.T) {
			var all [hosts]struct {
				Flood
				in, board []status.Status
				calls     map[uint64]bool // that were heard of
			}
			passed := 0
			take := func(h int, s status.Status) {
				if !learns(&all[h].Flood, s) {
					return
				}
				if all[h].calls == nil {
					all[h].calls = map[uint64]bool{}
				}
				all[h].calls[s.Calls] = true
				all[h].board = append(all[h].board, s)
				for _, beside := range []int{1, 2, hosts - 2, hosts - 1} {
					passed++
					all[(h+beside)%hosts].in = append(all[(h+beside)%hosts].in, s)
				}
			}
			begun := 0
			for k := range uint64(calls) {
				for h := 1; h < hosts; h++ { // host 0 stands still
					s := status.Status{Comm: 9, World: int32(h), Rank: int32(h), Size: hosts, Calls: k + 1, Hash: uint32(k), Brief: tc.brief}
					all[h].NumberStatus(&s)
					take(h, s)
					begun++
				}
			}
			const most = hosts * 4
			for busy := true; busy; {
				busy = false
				for h := range all {
					switch from := &all[h]; {
					case len(from.in) > 0:
						s := from.in[0]
						from.in = from.in[1:]
						take(h, s)
					case len(from.board) > 0:
						s := from.board[0]
						from.board = from.board[1:]
						take(h, s)
					default:
						continue
					}
					busy = true
				}
				require.LessOrEqual(t, passed, begun*most, "they go round")
			}
			for h := range all {
				require.Len(t, all[h].calls, calls, "host %d", h)
			}
		})
	}
}

// A neighbor that takes nothing is not waited for with each brief, and what is kept for it is bounded.
func TestBriefsForASlowNeighbor(t *testing.T) {
	for name, brief := range map[string]bool{"statuses": false, "briefs": true} {
		t.Run(name, func(t *testing.T) {
			a, b := auth.Pipe()
			defer b.Close()
			c := &Conn{Stream: a}
			var f Flood
			for k := range uint64(20 * unsentMax / status.Wire) {
				s := status.Status{World: 1, Size: 2, Calls: k, Brief: brief}
				f.NumberStatus(&s)
				on, first := f.Status(&s, nil)
				require.True(t, first)
				on.To([]*Conn{c})
			}
			require.Greater(t, c.Stream.Unsent(), unsentMax/2)
			require.LessOrEqual(t, c.Stream.Unsent()+len(c.batch), unsentMax+2*batchMax+FrameMax)
		})
	}
}
