package plane

import (
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// The last calls of a process that has ended. What such a process has sent may still lie in sockets
// and pipes, and a rank for which its call was not the last does not know. So in a Comm of several
// hosts a call under way outlives the end of a process of the Comm: it goes on for as long as it
// moves. The Comm fails once the call has ended, or
//
//   - at once, on all ranks, if a rank finds that the process has not sent what it needs, by the
//     end of a connection or an
//     empty pipe, nor has a rank that had no call under way, or has ended it;
//   - on all ranks, if the call has not moved for lastCallFor: the others may have no part in it any more.
//
// Within one host, ranks leave a call together, and a Comm fails at once.
//
// A Comm that the process has closed does not fail at all by its end, and gives what the process
// has sent to calls that come later as well. Of another host that is known once all its ranks have
// closed the Comm: one event for each host and Comm.

// lastCallFor is how long a call that has outlived a process waits without moving.
const lastCallFor = time.Second

// outlived is the end of a process that a call goes on after.
type outlived struct {
	fault *call.Fault
	since int64 // coarse
}

// outlive lets the call under way go on after a process has ended, which is to be the cause of c's
// failure. It is false where there is no such call: then c is to fail.
func (c *Standing) outlive(f *call.Fault) bool {
	if c.fate.cause.Load() != nil || c.group.Topology().Nodes() == 1 {
		return false
	}
	if c.fate.outlived.Load() != nil { // the first counts
		return true
	}
	if !c.isCalling() {
		return false
	}
	// first: a goroutine that finds the proposal must find this, too (see Fail)
	c.fate.outlived.Store(&outlived{f, c.Site.Job.Clock()})
	if !c.fate.proposal.CompareAndSwap(nil, f) {
		c.fate.outlived.Store(nil)
		return false
	}
	return true
}

// isCalling reports whether a call of the engine's own is under way. One of another engine is not to go on.
func (c *Standing) isCalling() bool {
	return c.hooks.Busy != nil && c.hooks.Busy() && c.Elsewhere.foreignSince() == 0
}

// Outlived is the cause with which c is to fail, if only the call under way is still to end; else nil.
func (c *Fate) Outlived() *call.Fault {
	if o := c.outlived.Load(); o != nil {
		return o.fault
	}
	return nil
}

// announcedMost is how many hosts a job may have that announces the closing of Comms: all hosts
// hear of each from each of its hosts.
const announcedMost = 256

// hostClosed says that all ranks of a host, of which one is rank of the world, have closed a Comm.
type hostClosed struct {
	comm uint64
	rank int
}

// earlyMost is how many a process keeps for Comms that it is about to have: others may have closed them before.
const earlyMost = 1 << 12

// markClosed notes that all ranks of a host have closed a Comm.
func (j *Job) markClosed(h hostClosed) {
	j.mu.Lock()
	list := slices.Clone(j.comms[h.comm])
	if j.early = append(j.early, h); len(j.early) > earlyMost {
		j.early = slices.Delete(j.early, 0, 1)
	}
	j.mu.Unlock()
	for _, c := range list {
		c.Share.noteClosed(h.rank)
	}
}

// noteClosed notes that the ranks on the host of rank w of the world have closed the Comm.
func (c *Share) noteClosed(w int) {
	if r := c.group.RankOf(w); r >= 0 {
		c.life.Lock()
		c.closed = append(c.closed, c.group.Topology().Node(r))
		c.life.Unlock()
	}
}
