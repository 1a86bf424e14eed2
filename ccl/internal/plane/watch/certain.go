package watch

import "time"

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

// stoodStill reports whether this process has stood still, until again, for so long that others may
// have given it up, and has not heard the host of rank w of the world since. Job.Mu is held.
func (s *Neighbors) stoodStill(w int) (again time.Duration, unheard bool) {
	j := s.host.Job
	again, stood := j.Lived.Stood()
	return again, stood && !s.heard[j.World.Topo.Node(w)].since(again, unbroken(*j.Peer))
}

// Doubts reports whether rank w of the world, which is on another host and seems to be gone, may
// have given this process up before, and gone on: this process has stood still, and finds w gone as
// it comes back. Job.Mu is held.
func (s *Neighbors) Doubts(w int) bool {
	j := s.host.Job
	switch {
	case *j.Peer <= 0 || !j.World.IsRank(w) || j.World.Topo.Node(w) == s.host.Node:
		return false
	case j.World.Of(w).Lost: // the first word of that stands
		return j.World.Of(w).Doubted
	}
	again, unheard := s.stoodStill(w)
	return unheard && j.Lived.Now()-again <= comesBack*max(*j.Peer, time.Second)
}

// comesBack is for how many times PeerTimeout a process that has stood still is coming back: one
// host after the other is dialed, waited for and asked about.
const comesBack = 4

// MayBeOut is Doubts of a caller that holds no lock.
func (s *Neighbors) MayBeOut(w int) bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.Doubts(w)
}

// AreHeard reports whether the host of rank w of the world was heard until now, or nobody is
// suspected: then its word that w has ended is certain. It is not if this process has stood still,
// and has not heard that host since.
func (s *Neighbors) AreHeard(w int) bool {
	j := s.host.Job
	now := j.Lived.Now()
	j.Mu.Lock()
	defer j.Mu.Unlock()
	if _, unheard := s.stoodStill(w); unheard {
		return false
	}
	h, ever := s.heard[j.World.Topo.Node(w)]
	return ever && now-h.last <= Trusted(*j.Peer) || j.World.AllCertain()
}

// Trusted is how long a process may be silent, or have stood still, and others, which give it up
// after peer, certainly have not done so and gone on.
func Trusted(peer time.Duration) time.Duration { return peer / 2 }

// heard is the last time for which another host was heard, without a break, in time lived.
type heard struct{ first, last time.Duration }

// unbroken is how long a host that beats may say nothing; it beats once in IdleTick, or a little
// later. It takes less to read all that was sent to a process that stood still.
func unbroken(peer time.Duration) time.Duration { return max(LeastSilence, 2*IdleTick(peer)) }

// since reports whether a host was heard for so long after t.
func (h heard) since(t, long time.Duration) bool { return h.last-max(h.first, t) >= long }

// Hear notes that something has come from host h.
func (s *Neighbors) Hear(h int) {
	j := s.host.Job
	now, long := j.Lived.Now(), unbroken(*j.Peer)
	j.Mu.Lock()
	defer j.Mu.Unlock()
	was, ever := s.heard[h]
	if !ever || now-was.last > long {
		was.first = now
	}
	was.last = now
	s.heard[h] = was
}
