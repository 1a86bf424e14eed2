package event

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An event is new once for each stage that it goes through.
func TestSeen(t *testing.T) {
	var seen Seen
	for i, tc := range []struct {
		e    Event
		want bool
	}{
		{Event{Origin: 1, Number: 1, Stage: Proposed}, true},
		{Event{Origin: 1, Number: 1, Stage: Proposed, Peer: 7}, false},
		{Event{Origin: 1, Number: 1, Stage: Decided}, true},
		{Event{Origin: 1, Number: 2, Stage: Proposed}, true},
		{Event{Origin: 2, Number: 1, Stage: Proposed}, true},
		{Event{Origin: 2, Number: 1, Stage: Proposed}, false},
		{Event{Origin: 2, Number: 4, Stage: Proposed}, true},
		{Event{Origin: 2, Number: 3, Stage: Proposed}, true},
		{Event{Origin: 2, Number: 2, Stage: Proposed}, true},
		{Event{Origin: 2, Number: 3, Stage: Proposed}, false},
	} {
		assert.Equal(t, tc.want, seen.First(&tc.e), "the %d. event", i)
	}
	assert.Equal(t, map[source][]run{{1, Proposed}: {{1, 2}}, {1, Decided}: {{1, 1}}, {2, Proposed}: {{1, 4}}}, seen.runs)
}

// None is taken for new twice, and none that is new for one that has come, however many Comms all hosts of a job close at
// once, in whatever order their events come and over however many connections. What is kept of a source is bounded.
func TestSeenAll(t *testing.T) {
	const origins, numbers, copies = 25, 400, 4
	random := rand.New(rand.NewPCG(1, 1))
	var events []Event
	for range copies {
		for o := range int32(origins) {
			for n := range uint32(numbers) {
				events = append(events, Event{Origin: o, Number: n + 1})
			}
		}
	}
	for i := range events { // an event is overtaken by a few of its source
		j := min(i+random.IntN(runsMost/2), len(events)-1)
		events[i], events[j] = events[j], events[i]
	}
	var seen Seen
	come, most := map[Event]bool{}, 0
	for _, e := range events {
		if seen.First(&e) == come[e] {
			t.Fatalf("%d of %d: it had come: %v", e.Number, e.Origin, come[e])
		}
		come[e] = true
		most = max(most, len(seen.runs[source{origin: e.Origin}]))
	}
	require.Greater(t, most, 1)
	for _, runs := range seen.runs {
		require.Equal(t, []run{{1, numbers}}, runs)
	}
	for n := range uint32(10 * runsMost) { // every second of them never comes
		require.True(t, seen.First(&Event{Origin: origins, Number: 2 * n}))
		require.LessOrEqual(t, len(seen.runs[source{origin: origins}]), runsMost)
	}
	require.True(t, seen.First(&Event{Origin: origins, Number: 20*runsMost - 3}), "it may still come")
	require.False(t, seen.First(&Event{Origin: origins, Number: 1}), "it comes no more")
}
