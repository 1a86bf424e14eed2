package watch

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// How the monitor of a process sleeps.
const (
	Naps  = iota // for a tick or a few
	Dozes        // for longer, since it gets its turn late: it is woken by reports of failures
	Idles        // for longer, since there is nothing to do: it is woken by anything
)

// BeatEvery is how often a process beats, in its pulse and over its connections with other hosts.
const BeatEvery = 250 * time.Millisecond

// LeastSilence is the shortest silence that makes a process or a host lost, whatever
// Options.PeerTimeout: four beats, since one may be late on a busy machine.
const LeastSilence = 4 * BeatEvery

// IdleTick is how long a monitor sleeps at a time while it is idle, and how often it beats then:
// each time wakes several threads, and eight must fit into the silence of peer that makes a process
// lost, where that is longer than 2 s.
func IdleTick(peer time.Duration) time.Duration {
	if peer <= 0 {
		return time.Second
	}
	return min(max(peer/8, BeatEvery), time.Second)
}

// ShowSleep says in this process's pulse how its monitor sleeps, by which others know whether it is to be rung.
func (s *Processes) ShowSleep(how uint32) {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	if s.pulse != nil && s.pulse.sleep.Load() != how {
		s.pulse.sleep.Store(how)
	}
}

// ring rings the processes of this host that sleep so deep or deeper, and have something to read.
func (s *Processes) ring(deep uint32) {
	t := s.host.Ends.Ringer.Load()
	if t == nil {
		return
	}
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	for i := range s.others {
		o := &s.others[i]
		if how := &s.pulses[o.local].sleep; !o.gone && how.Load() >= deep && how.Swap(Naps) != Naps {
			t.Ring(o.local)
		}
	}
}

// guard has this process told of the end of the next process of its host, in the circle of those
// that are left: so each is watched by one. It is false where that cannot be. Job.Mu is held.
func (s *Processes) guard() bool {
	var next *watched
	for i := range s.others {
		o := &s.others[i]
		if o.gone || s.pulses[o.local].death.Load() == 0 { // whose socket tells
			continue
		}
		if o.local > s.host.place() {
			next = o
			break
		}
		if next == nil {
			next = o
		}
	}
	if next == nil {
		return proc.WatchDeath(&s.pulse.death, nil, s.host.Monitor)
	}
	return proc.WatchDeath(&s.pulse.death, &s.pulses[next.local].death, s.host.Monitor)
}
