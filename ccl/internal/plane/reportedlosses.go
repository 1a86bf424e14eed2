package plane

import "sync/atomic"

// reportedLosses are the last ranks whose loss a process of the host has logged, so that one
// process logs it. Each is 1 + the rank of the world, 0 for none. The upper half is 1 + the rank
// whose process is to log it, until it has: if that process is lost meanwhile, another logs the
// loss, at worst once more.
type reportedLosses [8]atomic.Uint64

// claim reports whether process me is to tell of rank w of the world, and, where it is not, whether
// another has told. isLost reports whether a process is lost.
func (m *reportedLosses) claim(w, me int, isLost func(int) bool) (tells, told bool) {
	mine := (uint64(me)+1)<<32 | (uint64(w) + 1)
	for i := range m {
		for {
			v := m[i].Load()
			teller := int(v>>32) - 1
			switch {
			case v != 0 && uint32(v) != uint32(w)+1: // of another rank
			case v != 0 && teller < 0:
				return false, true
			case v != 0 && !isLost(teller):
				return false, false
			case m[i].CompareAndSwap(v, mine):
				return true, false
			default: // another process was faster
				continue
			}
			break
		}
	}
	m[w%len(m)].Store(mine) // many are lost: one of them may be told of again
	return true, false
}

// tell notes that process me has told of rank w.
func (m *reportedLosses) tell(w, me int) {
	for i := range m {
		m[i].CompareAndSwap((uint64(me)+1)<<32|(uint64(w)+1), uint64(w)+1)
	}
}

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
	m, me := &boardOf(c.Site.Here.Host).told, c.Site.Here.Mine
	tells, told := m.claim(w, me, job.IsLost)
	if tells {
		say()
		m.tell(w, me)
	}
	return tells || told
}
