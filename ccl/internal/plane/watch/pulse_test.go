package watch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/internal/algo"
)

// On a host crowded with processes a longer silence than PeerTimeout is no loss: a live one may need that long for its turns.
func TestSilence(t *testing.T) {
	s := hostOf(t, 1, 5*time.Second)
	p := &s.Processes
	assert.Equal(t, 5*time.Second, p.Silence(), "no memory is shared")
	s.Host = PrivateHost()
	cores := s.Host.Processors()
	p.others = make([]watched, 8*cores-1)
	assert.Equal(t, 5*time.Second, p.Silence(), "eight for a processor")

	p.others, p.pulses = make([]watched, 256*cores-1), make([]pulse, 256*cores)
	s.Job.World.Topo = algo.Flat(256 * cores)
	p.pulse = &p.pulses[0]
	p.pulses[1].beat.Store(7)
	for i := range p.others {
		p.others[i] = watched{local: i + 1, gone: i > 0, beat: 7}
	}
	assert.Equal(t, 10240*time.Millisecond, p.Silence(), "256 for a processor")
	for start := time.Now(); s.Job.Lived.Now() < 9*time.Second; start = start.Add(100 * time.Millisecond) {
		s.Job.Lived.Lap(start)
	}
	_, losses, _ := p.Look(true)
	assert.Empty(t, losses, "lost after 9s, with a limit of 10.24s")
	p.pulse, p.pulses, p.others = nil, nil, nil
}
