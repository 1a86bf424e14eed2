package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// On a host crowded with processes a longer silence than PeerTimeout is no loss: a live one may need that long for its turns.
func TestSilence(t *testing.T) {
	j := EnterJob(t.Name(), 5*time.Second)
	defer j.Leave()
	s := j.Site(0)
	assert.Equal(t, 5*time.Second, s.silence(), "no memory is shared")
	s.Host = PrivateHost()
	cores := s.Host.Processors()
	s.others = make([]watched, 8*cores-1)
	assert.Equal(t, 5*time.Second, s.silence(), "eight for a processor")

	s.others = make([]watched, 256*cores-1)
	pulses := make([]pulse, 256*cores)
	pulses[1].beat.Store(7)
	s.pulse, s.pulses = &pulses[0], pulses
	for i := range s.others {
		s.others[i] = watched{local: i + 1, gone: i > 0, beat: 7}
	}
	check := func(lived time.Duration) bool {
		for start := time.Now(); j.Lived.Now() < lived; start = start.Add(100 * time.Millisecond) {
			j.Lived.Lap(start)
		}
		s.mu.Lock()
		limit := s.silence()
		s.mu.Unlock()
		assert.Equal(t, 10240*time.Millisecond, limit, "256 for a processor")
		s.checkPulses(true)
		return s.others[0].gone
	}
	assert.False(t, check(9*time.Second), "lost after 9s, with a limit of 10.24s")
	s.pulse, s.pulses, s.others = nil, nil, nil
}
