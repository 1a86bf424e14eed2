package plane

import (
	"errors"
	"time"
)

// Whether a loss is certain. On one host the kernel says that a process has ended, and what the
// others have believed before is read first, in the log of the host, or in this process's pulse
// where they have given it up: certain. The end of a process of another host shows by its port,
// which its host refuses. That it has ended is then true, but not that it was here until then: the
// others give up a process that they have not heard for PeerTimeout, go on without it, and may come
// to their end when that one is back. Then this process would leave those others out of its
// majority. So this process must know that the others counted it in until a moment ago:
//
//   - it has not stood still, for half of PeerTimeout or longer, since it last heard the other
//     host; what comes at once when it goes
//     on does not count, since it may have been sent before;
//   - it has heard that within half of PeerTimeout, or no loss is suspected: there is no sign of a partition.
//
// What stands still with all of its clocks, as a virtual machine may, cannot know that it did.

// errEnded is why a rank is lost whose process was seen to end, and will send nothing more. A loss
// with errEnded alone as its cause is certain: see Lost.
var errEnded = errors.New("its process ended")

// stoodStill reports whether this process has stood still, until again, for so long that others may
// have given it up, and has not heard the host of rank w of the world since. Job.mu is held.
func stoodStill(s *Site, w int) (again time.Duration, unheard bool) {
	again, stood := s.Job.Time.Lived.Stood()
	return again, stood && !s.near.heard[s.Job.World.Topo.Node(w)].since(again, unbroken(s.Job))
}

// mayBeOut reports whether rank w of the world, which is on another host and seems to be gone, may
// have given this process up before, and gone on: this process has stood still, and finds w gone as
// it comes back. Job.mu is held.
func mayBeOut(s *Site, w int) bool {
	m := &s.Job.World
	switch {
	case s.Job.peer <= 0 || !m.IsRank(w) || m.Topo.Node(w) == s.Here.Node:
		return false
	case m.Of(w).Lost: // the first word of that stands
		return m.Of(w).Doubted
	}
	again, unheard := stoodStill(s, w)
	return unheard && s.Job.Time.Lived.Now()-again <= comesBack*max(s.Job.peer, time.Second)
}

// comesBack is for how many times PeerTimeout a process that has stood still is coming back: one
// host after the other is dialed, waited for and asked about.
const comesBack = 4

// MayBeOut is mayBeOut.
func MayBeOut(s *Site, w int) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return mayBeOut(s, w)
}

// trusted is how long a process may be silent, or have stood still, and others certainly have not
// given it up and gone on.
func trusted(j *Job) time.Duration { return j.peer / 2 }

// heard is the last time for which another host was heard, without a break, in time lived.
type heard struct{ first, last time.Duration }

// unbroken is how long a host that beats may say nothing; it beats once in idleTick, or a little
// later. It takes less to read all that was sent to a process that stood still.
func unbroken(j *Job) time.Duration { return max(leastSilence, 2*j.idleTick()) }

// since reports whether a host was heard for so long after t.
func (h heard) since(t, long time.Duration) bool { return h.last-max(h.first, t) >= long }

// hear notes that something has come from host h.
func (s *neighborhood) hear(h int) {
	now, long := s.host.Job.Time.Lived.Now(), unbroken(s.host.Job)
	s.host.Job.mu.Lock()
	defer s.host.Job.mu.Unlock()
	was, ever := s.heard[h]
	if !ever || now-was.last > long {
		was.first = now
	}
	was.last = now
	s.heard[h] = was
}
