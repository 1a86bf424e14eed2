package event

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// An event is new once for each stage that it goes through, and the memory of them is bounded.
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
	} {
		assert.Equal(t, tc.want, seen.First(&tc.e), "the %d. event", i)
	}
	for i := range uint32(2 * keptIDs) {
		assert.True(t, seen.First(&Event{Origin: 3, Number: i}))
	}
	assert.Len(t, seen.ids, keptIDs)
	assert.Len(t, seen.order, keptIDs)
	assert.True(t, seen.First(&Event{Origin: 1, Number: 1, Stage: Proposed}), "it was forgotten")
	assert.False(t, seen.First(&Event{Origin: 3, Number: 2*keptIDs - 1}))
}
