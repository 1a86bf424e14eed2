package plane

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// What a process proposes of a Comm that it has no rank of, as one does whose Split failed, waits for a decision like all
// else, and is insisted on if none comes.
func TestProposalOfAnothersComm(t *testing.T) {
	s := &Site{job: &job{comms: map[uint64][]*Member{}}}
	for _, code := range []call.Code{call.RankLost, call.Canceled, call.Aborted} {
		e := Event{Comm: 42 + uint64(code), Code: uint8(code), Peer: 1}
		assert.False(t, s.isMoot(&e), "code %d", code)
		s.settled.keep(e.subject())
		assert.True(t, s.isMoot(&e), "code %d", code)
	}
}

// What has been decided takes no more memory in a job whose Comms fail again and again; losses are remembered.
func TestSettledIsBounded(t *testing.T) {
	var k subjects
	for i := range 3 * keptFailures {
		k.keep(subject{uint64(i + 1), -1})
		if i < 100 {
			k.keep(subject{0, int32(i)})
		}
	}
	assert.Len(t, k.all, keptFailures+100)
	assert.Len(t, k.list, keptFailures)
	for i := range 3 * keptFailures {
		assert.Equal(t, i >= 2*keptFailures, k.has(subject{uint64(i + 1), -1}), i)
	}
	for i := range 100 {
		assert.True(t, k.has(subject{0, int32(i)}))
	}
}
