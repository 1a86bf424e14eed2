package cpu

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What a process proposes of a Comm that it has no rank of, as one does whose Split failed, waits for a decision like all
// else, and is insisted on if none comes.
func TestProposalOfAnothersComm(t *testing.T) {
	s := &site{job: &job{comms: map[uint64][]*Comm{}, settled: map[subject]bool{}}}
	for _, code := range []Code{RankLost, Canceled, Aborted} {
		e := event{Comm: 42 + uint64(code), Code: uint8(code), Peer: 1}
		assert.False(t, s.isMoot(&e), "code %d", code)
		s.settled[e.subject()] = true
		assert.True(t, s.isMoot(&e), "code %d", code)
	}
}
