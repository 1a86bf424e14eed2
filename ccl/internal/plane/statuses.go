package plane

import (
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/lived"
)

// reporterIsBeside reports whether another process of this host is the one to report where all ranks stood.
func reporterIsBeside(s *Site) bool {
	s.Job.mu.Lock()
	defer s.Job.mu.Unlock()
	return s.Job.World.ReportingHost() == s.Here.Node && s.Job.reporter() == nil
}

// reportStall reports the call that c waits in, if no lower rank does.
func (s *Site) reportStall(c *Member, mine status.Status, moved Moved) {
	if c.Hooks.OnLate == nil {
		return
	}
	l, ok := status.LateIn(mine, s.Job.Statuses.Of(c.Group.ID()))
	if !ok {
		return
	}
	l.Done, l.Of = moved.Done, moved.Of
	l.Waits.SetName(c.Standing.Label.Name())
	if c.Hooks.Caller != nil && !c.Standing.note.queued {
		l.Waits.SetCaller(c.Hooks.Caller())
	}
	go c.Hooks.OnLate(l)
}

// Name is what the Comm is called in reports.
func (c *Label) Name() string {
	if n := c.name.Load(); n != nil {
		return *n
	}
	return "comm"
}

// SetName names the Comm.
func (c *Label) SetName(name string) { c.name.Store(&name) }

// reporter is the Comm of this process that speaks for the job, if its process is the one to
// do so: that of the lowest rank of the world that has not gone. j.mu is held.
func (j *Job) reporter() *Member {
	m, lowest := j.comms.lowest()
	if m == nil || j.World.LowestLeft() < lowest {
		return nil
	}
	return m
}

// broken is a failure that was heard of.
type broken struct {
	at     int64 // coarse; 0: none
	code   call.Code
	closed []uint64 // Comms that have failed and that this process has closed since
}

// snapshotAfter is how long the ranks have to say where they stood when the first failure came.
const snapshotAfter = 50 * time.Millisecond

// reportSnapshot reports where all ranks stood, if it is time and this process's part to.
func (j *Job) reportSnapshot(now int64) {
	j.mu.Lock()
	code := j.broken.code
	if j.broken.at == 0 || now-j.broken.at < int64(snapshotAfter) {
		j.mu.Unlock()
		return
	}
	closed := j.broken.closed
	j.broken = broken{}
	m := j.reporter()
	j.mu.Unlock()
	if m != nil && m.Hooks.OnPicture != nil {
		all := j.Statuses.Of(0)
		j.Life.Wg.Go(func() { m.Hooks.OnPicture(code, all) }) // which may take its time
	}
	for _, comm := range closed {
		j.Statuses.Forget(comm)
	}
}

// awaitSnapshot returns when the monitor has reported where all ranks stood, if it has to: it gets
// its turn late on a busy machine.
func awaitSnapshot(j *Job) {
	for over := lived.For(time.Second); !over(); time.Sleep(tick) {
		j.mu.Lock()
		reported := j.broken.at == 0
		j.mu.Unlock()
		if reported {
			return
		}
		j.Time.Coarse.WakeMonitor()
	}
}

// Job names the job, for reports.
func (c *Standing) Job() string { return c.Site.Job.id }
