package scale

import "time"

// Where all processes of a job share a few processors, what tells a failure to the ranks is that each looks around in its turn.

// looks is the event of a message by which a process is to look around.
const looks = -4

// tick is how often it does: see package plane.
const tick = 5 * time.Millisecond

// listeners are the processes of the hosts, beside those that lead them.
type listeners struct {
	told  []time.Duration // by host, when its log says that a loss is believed; 0: it does not
	heard int             // processes that have read that
}

// listenAll has all processes look around from now on, where they share processors.
func (f *flood) listenAll() {
	f.listen.told = make([]time.Duration, len(f.hosts))
	if len(f.shared) == 0 {
		return
	}
	for h := range f.hosts {
		for l := range f.topo.Locals(h) {
			f.calendar.add(message{at: time.Duration(f.random.Int64N(int64(tick))), to: int32(h), from: int32(l), event: looks})
		}
	}
}

// tell notes that the log of host h says that a loss is believed.
func (f *flood) tell(h int, now time.Duration) {
	if f.listen.told[h] == 0 {
		f.listen.told[h] = now
	}
}

// look has a process look around, and again a tick later unless it has heard of the loss.
func (f *flood) look(m message) {
	done := f.shared.run(m.at, f.net.look)
	if at := f.listen.told[m.to]; at > 0 && at <= done {
		f.listen.heard++
		f.result.all = max(f.result.all, done)
		return
	}
	f.calendar.add(message{at: done + tick, to: m.to, from: m.from, event: looks})
}
