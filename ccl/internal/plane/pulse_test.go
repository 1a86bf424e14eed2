package plane

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane/event"
)

// A process that the others of its host have given up finds that in its pulse, though the log of the host has gone on without it: it
// is lost itself before it believes that they have ended.
func TestOutIsFoundInThePulse(t *testing.T) {
	j := EnterJob(t.Name(), time.Second)
	defer j.Leave()
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host, s.Here.Procs = group.Topology([]int{0, 0, 0}, 1), PrivateHost(), []int{0, 1, 1}
	c := memberOf(t, s, group.WorldID, 0, Options{})
	pulses := make([]pulse, 3)
	s.Here.processes.pulse, s.Here.processes.pulses = &pulses[0], pulses
	s.Here.processes.others = []watched{{local: 1}}
	outs := func() []uint32 { return []uint32{pulses[0].out.Load(), pulses[1].out.Load(), pulses[2].out.Load()} }

	pulses[0].out.Store(1) // the others have
	pulses[1].left.Store(1)
	s.checkPulses(false)
	require.True(t, j.IsLost(0))
	require.False(t, j.HasEnded(0))
	f := c.Fate.Cause()
	require.NotNil(t, f)
	require.Equal(t, []any{call.RankLost, 0}, []any{f.Code, f.Peer})
	require.ErrorContains(t, f.Err, "the others have given this rank up")

	pulses[0].out.Store(0)
	s.checkPulses(false)                      // it knows
	for _, w := range []int{-1, 3, 1 << 30} { // as another host may say
		s.Here.noteOut(w)
	}
	require.Equal(t, []uint32{0, 0, 0}, outs())
	e := event.New(0, call.RankLost, 1, 0, 0, errors.New("its process has been silent for 5s"))
	s.Job.Order.Lock()
	s.believe(&e)
	s.Job.Order.Unlock()
	require.Equal(t, []uint32{0, 1, 0}, outs())
	s.Here.processes.pulse, s.Here.processes.pulses, s.Here.processes.others = nil, nil, nil
}

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
