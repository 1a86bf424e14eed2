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
	assert.Equal(t, 5*time.Second, s.Here.silence(), "no memory is shared")
	s.Here.Host = PrivateHost()
	cores := s.Here.Host.Processors()
	s.Here.processes.others = make([]watched, 8*cores-1)
	assert.Equal(t, 5*time.Second, s.Here.silence(), "eight for a processor")

	s.Here.processes.others = make([]watched, 256*cores-1)
	pulses := make([]pulse, 256*cores)
	pulses[1].beat.Store(7)
	s.Here.processes.pulse, s.Here.processes.pulses = &pulses[0], pulses
	for i := range s.Here.processes.others {
		s.Here.processes.others[i] = watched{local: i + 1, gone: i > 0, beat: 7}
	}
	check := func(lived time.Duration) bool {
		for start := time.Now(); j.Time.Lived.Now() < lived; start = start.Add(100 * time.Millisecond) {
			j.Time.Lived.Lap(start)
		}
		s.Job.mu.Lock()
		limit := s.Here.silence()
		s.Job.mu.Unlock()
		assert.Equal(t, 10240*time.Millisecond, limit, "256 for a processor")
		s.checkPulses(true)
		return s.Here.processes.others[0].gone
	}
	assert.False(t, check(9*time.Second), "lost after 9s, with a limit of 10.24s")
	s.Here.processes.pulse, s.Here.processes.pulses, s.Here.processes.others = nil, nil, nil
}
