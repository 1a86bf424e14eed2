package plane

import (
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/stretchr/testify/assert"
)

// Eight sleeps of an idle monitor fit into the silence that makes a process lost.
func TestIdleTick(t *testing.T) {
	for peer, want := range map[time.Duration]time.Duration{0: time.Second, leastSilence: BeatEvery, 2 * time.Second: BeatEvery,
		5 * time.Second: 625 * time.Millisecond, time.Minute: time.Second} {
		assert.Equal(t, want, (&Job{peer: peer}).idleTick(), "%v", peer)
	}
}

// The more processes share a processor, the less often each looks around.
func TestQuickTick(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	assert.Equal(t, tick, j.quickTick(), "no memory is shared")
	h, err := sharedHost(nil)
	if err != nil {
		t.Skip("hardware: no memory to share here: " + err.Error())
	}
	s.Here.Host = h
	assert.Equal(t, tick, j.quickTick())
	s.Here.processes.others = make([]watched, 200*h.Processors()-1)
	assert.Equal(t, 100*time.Millisecond, j.quickTick())
}

// A monitor that gets its turn late looks around less often, but not much, and never more often.
func TestSpaced(t *testing.T) {
	for _, tc := range []struct{ quick, late, want time.Duration }{
		{tick, 0, tick}, {tick, -time.Second, tick}, {tick, tick / 9, tick}, {tick, 2 * time.Millisecond, 18 * time.Millisecond}, {tick, time.Hour, time.Second},
		{2 * time.Second, time.Hour, 2 * time.Second}, {BeatEvery, tick, BeatEvery},
	} {
		assert.Equal(t, tc.want, spaced(tc.quick, tc.late, time.Second), "%v late", tc.late)
	}
}

// With nothing to look after the monitor is idle; with a failure that is not decided it is not, nor where it could not be
// told of one.
func TestSettleDown(t *testing.T) {
	j := EnterJob(t.Name(), 0)
	defer j.Leave()
	s := j.Site(0)
	s.Here.Host = PrivateHost()
	assert.True(t, j.rest(1000, idles))
	assert.False(t, j.Time.Coarse.IsActive())
	j.Clock()
	assert.True(t, j.Time.Coarse.Look(), "the clock says that it is late")

	for _, how := range []uint32{idles, dozes} {
		e := event.Event{Stage: event.Proposed}
		j.World.Events.Remember(&e)
		assert.False(t, j.rest(1000, how))
		j.World.Events = event.Sequencer{}
		s.proposals.Add(event.Event{}, time.Hour)
		assert.False(t, j.rest(1000, how))
		s.proposals = event.Proposals{}
		j.Time.Coarse.Look()
		j.Time.Coarse.KeepAwake()
		assert.Equal(t, how == dozes, j.rest(1000, how), "a call has just begun")
		j.Time.Coarse.WakeMonitor()
		assert.False(t, j.rest(1000, how))
	}
}
