package event

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A proposal that is moot is dropped; one whose time has come is believed, once.
func TestProposals(t *testing.T) {
	var p Proposals
	assert.False(t, p.Any())
	for comm, until := range map[uint64]time.Duration{1: 10, 2: 20, 3: 30, 4: 10} {
		p.Add(Event{Comm: comm, Stage: Proposed}, until)
	}
	assert.True(t, p.Any())
	moot := func(e *Event) bool { return e.Comm == 4 }
	assert.Empty(t, p.Due(9, moot))
	assert.Equal(t, []Event{{Comm: 1, Stage: Final}}, p.Due(10, moot))
	assert.Empty(t, p.Due(10, moot))
	assert.True(t, p.Any())
	assert.Equal(t, []Event{{Comm: 2, Stage: Final}}, p.Due(30, func(e *Event) bool { return e.Comm == 3 }))
	assert.False(t, p.Any())
}
