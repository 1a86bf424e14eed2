package plane

import "github.com/goccl/goccl/ccl/internal/plane/watch"

// Tell calls say if this rank is the one of its host to tell people that rank r of the Comm is
// lost; all ranks of all Comms hear of it.
func (c *Standing) Tell(r int, say func()) {
	if r < 0 {
		say()
		return
	}
	c.TellOfWorld(c.group.World(r), say)
}

// TellOfWorld is Tell for rank w of the world. It reports whether people have been told: it is
// false while another process is at it, and if that is lost, whoever hears of this asks again.
func (c *Standing) TellOfWorld(w int, say func()) bool {
	job := c.Site.Job
	if !job.TryHold() { // the job is over: others may have gone before they told
		say()
		return true
	}
	defer job.Leave()
	m, me := &watch.BoardOf(c.Site.Here.Host).Told, c.Site.Here.Mine
	tells, told := m.Claim(w, me, job.IsLost)
	if tells {
		say()
		m.Tell(w, me)
	}
	return tells || told
}
