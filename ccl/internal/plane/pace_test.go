package plane

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/watch"
	"github.com/goccl/goccl/internal/algo"
)

// The more processes share a processor, the less often each looks around.
func TestQuickTick(t *testing.T) {
	j := &Job{}
	j.sites = sites{newSite(j, 0)}
	assert.Equal(t, tick, j.quickTick(), "no memory is shared")
	for many, want := range map[int]time.Duration{1: tick, 200: 100 * time.Millisecond} {
		j.sites = sites{newSite(j, 0)}
		crowd(t, j.sites[0], many)
		assert.Equal(t, want, j.quickTick(), "%d for a processor", many)
	}
}

// crowd has the memory of s be that of so many processes for each of its processors.
func crowd(t *testing.T, s *Site, many int) {
	t.Helper()
	h := PrivateHost()
	n := many * h.Processors()
	h.Close()
	s.Job.World.Topo, s.Here.Procs = algo.Flat(n), make([]int, n)
	for r := range n {
		s.Here.Procs[r] = r
	}
	if err := s.Here.MakeHost(true, nil); err != nil {
		t.Skip("hardware: no memory to share here: " + err.Error())
	}
	t.Cleanup(s.Here.Reset)
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
	assert.True(t, j.rest(1000, watch.Idles))
	assert.False(t, j.Time.Coarse.IsActive())
	j.Clock()
	assert.True(t, j.Time.Coarse.Look(), "the clock says that it is late")

	for _, how := range []uint32{watch.Idles, watch.Dozes} {
		e := event.Event{Stage: event.Proposed}
		j.World.Events.Remember(&e)
		assert.False(t, j.rest(1000, how))
		j.World.Events = event.Sequencer{}
		s.proposals.Add(event.Event{}, time.Hour)
		assert.False(t, j.rest(1000, how))
		s.proposals = event.Proposals{}
		j.Time.Coarse.Look()
		j.Time.Coarse.KeepAwake()
		assert.Equal(t, how == watch.Dozes, j.rest(1000, how), "a call has just begun")
		j.Time.Coarse.WakeMonitor()
		assert.False(t, j.rest(1000, how))
	}
}
