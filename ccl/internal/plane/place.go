package plane

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// How long a rank whose Comm has failed waits for another to say where its call was made, in time
// that counts as Lived.Brief does.
const (
	placeFor = 250 * time.Millisecond
	// after that has said where it stood at the failure: not in that call, or in one that was queued
	placeUnless = 50 * time.Millisecond
)

// SwapPlaces tells the other ranks that c's call mine was made at place, and returns where rank
// peer says that its call was made, of which is reports that it is the one: "" if it does not say
// so soon. The Comm has failed, and both calls with it: calls that succeed say nothing.
func SwapPlaces(c *Member, mine call.Record, place string, peer int, is func(*call.Record) bool) string {
	if !c.Site.Job.TryHold() { // or the board of the host could go meanwhile
		return ""
	}
	defer c.Site.Job.Leave()
	n := &c.Standing.note
	n.Lock()
	now := c.Site.Job.Clock()
	s, _, _ := c.Standing.status(now)
	s.Call = mine
	s.SetCaller(place)
	n.atEnd = nil // this says more
	c.publish(s, now)
	n.Unlock()
	stood := false
	for over := briefly(c.Site.Job, placeFor); ; time.Sleep(time.Millisecond) {
		s, ok := c.Site.Job.Statuses.At(c.Group.ID(), int32(peer))
		switch {
		case ok && s.Caller() != "" && is(&s.Call):
			return s.Caller()
		case ok && s.Failed && !stood && (s.Doing == status.Waits || !is(&s.Call)):
			stood, over = true, briefly(c.Site.Job, placeUnless)
		case over():
			return ""
		}
	}
}
