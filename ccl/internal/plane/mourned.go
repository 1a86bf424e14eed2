package plane

import "sync/atomic"

// mourned are the last ranks whose loss a process of the host has told people of: 1 + the rank of the world each, 0 for none.
// One of them tells, though all ranks of all Comms hear.
type mourned [8]atomic.Uint64

// first reports whether nobody has told of rank w of the world yet. From now on somebody has.
func (m *mourned) first(w int) bool {
	for i := range m {
		for {
			v := m[i].Load()
			if v == uint64(w)+1 {
				return false
			}
			if v != 0 {
				break
			}
			if m[i].CompareAndSwap(0, uint64(w)+1) {
				return true
			}
		}
	}
	m[w%len(m)].Store(uint64(w) + 1) // many are lost: one of them may be told of again
	return true
}

// TellsOf reports whether this rank is the one of its host to tell people that rank r of the Comm is lost.
func (c *Standing) TellsOf(r int) bool { return r < 0 || c.TellsOfWorld(c.group.World(r)) }

// TellsOfWorld is TellsOf for rank w of the world.
func (c *Standing) TellsOfWorld(w int) bool {
	if !c.Site.Job.TryHold() { // the job is over: others may have gone before they told
		return true
	}
	defer c.Site.Job.Leave()
	return boardOf(c.Site.Here.Host).told.first(w)
}
