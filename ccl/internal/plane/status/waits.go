package status

import "time"

// StillWaits reports whether the rank that has said s is to be taken for one that waits, at that
// coarse time, by a call that has begun at since. A wait whose Comm has failed counts if it was
// under way then: a rank may be late since it has waited there until now. One that was over before
// is no reason.
func (s *Status) StillWaits(now, since int64) bool {
	return s.Doing == Waits && now-s.heard <= int64(s.holds()) && (!s.Failed || s.heard >= since)
}

const (
	publishAgain = 2 * time.Second       // after so long a rank that waits says so again,
	perRank      = 10 * time.Millisecond // and so much more for each rank of the Comm
)

// Again is the time after which a rank of a Comm of size ranks says again that it waits.
func Again(size int) time.Duration { return publishAgain + time.Duration(size)*perRank }

// holds is how long a status of a rank that waits is true.
func (s *Status) holds() time.Duration { return 2 * Again(int(s.Size)) }
