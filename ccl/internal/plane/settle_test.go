package plane

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
)

// What a process proposes of a Comm that it has no rank of, as one does whose Split failed, waits for a decision like all
// else, and is insisted on if none comes.
func TestProposalOfAnothersComm(t *testing.T) {
	s := newSite(&Job{comms: comms{}}, 0)
	for _, code := range []call.Code{call.RankLost, call.Canceled, call.Aborted} {
		e := event.Event{Comm: 42 + uint64(code), Code: uint8(code), Peer: 1}
		assert.False(t, s.isMoot(&e), "code %d", code)
		decided := e
		s.Job.World.Events.Remember(&decided)
		assert.True(t, s.isMoot(&e), "code %d", code)
	}
}

// believe has this process believe e, whoever else has heard of it. Job.Order is held.
func (s *Site) believe(e *event.Event) {
	s.Job.mu.Lock()
	do := s.Job.World.Believe(e, s.seen(e))
	s.Job.mu.Unlock()
	s.carryOut(e, do)
}

// historyOf lists what j believes.
func historyOf(j *Job) []event.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Events.History()
}

// knownTo lists what j believes, and proposals that nobody has decided.
func knownTo(j *Job) []event.Event {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.World.Events.All()
}
