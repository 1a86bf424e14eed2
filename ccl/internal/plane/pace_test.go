package plane

import (
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/stretchr/testify/assert"
)

// A clock that says that it is late is set anew by a call that reads it, which wakes an idle monitor once.
func TestClock(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	at := j.stamp(j.Born.Add(time.Second), false)
	assert.Equal(t, int64(time.Second), at)
	assert.Equal(t, at, j.Clock())
	assert.False(t, j.Pace.Active.Load(), "a clock that is right wakes nobody")

	j.Born = j.Born.Add(-time.Hour)
	j.stamp(j.Born.Add(time.Second), true)
	j.Pace.idle.Store(true)
	assert.GreaterOrEqual(t, j.Clock(), int64(time.Hour))
	assert.True(t, j.Pace.Active.Load())
	assert.Len(t, j.Pace.wake, 1)
	j.WakeMonitor()
	assert.Len(t, j.Pace.wake, 1, "it is being woken already")
	assert.Zero(t, j.now.Load()&1, "the next call finds it right")
}

// Eight sleeps of an idle monitor fit into the silence that makes a process lost.
func TestIdleTick(t *testing.T) {
	for peer, want := range map[time.Duration]time.Duration{0: time.Second, leastSilence: BeatEvery, 2 * time.Second: BeatEvery,
		5 * time.Second: 625 * time.Millisecond, time.Minute: time.Second} {
		assert.Equal(t, want, (&job{peer: peer}).idleTick(), "%v", peer)
	}
}

// The more processes share a processor, the less often each looks around.
func TestQuickTick(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	assert.Equal(t, tick, j.quickTick(), "no memory is shared")
	h, err := sharedHost()
	if err != nil {
		t.Skip("hardware: no memory to share here: " + err.Error())
	}
	s.Host = h
	assert.Equal(t, tick, j.quickTick())
	s.others = make([]watched, 200*h.Processors()-1)
	assert.Equal(t, 100*time.Millisecond, j.quickTick())
}

// With nothing to look after the monitor is idle; with a failure that is not decided it is not, nor where it could not be
// told of one.
func TestSettleDown(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	s.Host = PrivateHost()
	assert.True(t, j.becomeIdle(1000))
	assert.EqualValues(t, 1001, j.now.Load(), "the clock says that it is late")
	assert.True(t, j.Pace.idle.Load())
	j.Pace.idle.Store(false)

	e := event.Event{Stage: event.Proposed}
	j.undecided.Remember(&e)
	assert.False(t, j.becomeIdle(1000))
	j.undecided = event.Sequencer{}
	s.proposals.Add(event.Event{}, time.Hour)
	assert.False(t, j.becomeIdle(1000))
	s.proposals = event.Proposals{}
	j.Pace.Active.Store(true)
	assert.False(t, j.becomeIdle(1000), "a call has just begun")
	assert.False(t, j.Pace.idle.Load())
}
