package plane

// comms are the Comms of this process, by id: each rank of it has its own Member.
type comms map[uint64][]*Member

// add takes in c.
func (t comms) add(c *Member) { t[c.Group.ID()] = append(t[c.Group.ID()], c) }

// remove takes c out, and reports whether it was the last of its Comm.
func (t comms) remove(c *Member) (last bool) {
	list := t[c.Group.ID()]
	for i, x := range list {
		if x == c {
			list = append(list[:i:i], list[i+1:]...)
			t[c.Group.ID()] = list
			break
		}
	}
	if len(list) == 0 {
		delete(t, c.Group.ID())
	}
	return len(list) == 0
}

// members appends all of them to list.
func (t comms) members(list []*Member) []*Member {
	for _, of := range t {
		list = append(list, of...)
	}
	return list
}

// lowest is the Member of the lowest rank of the world, in the Comm with the lowest id; nil if there is none.
func (t comms) lowest() (m *Member, rank int) {
	for _, list := range t {
		for _, c := range list {
			if w := c.Group.World(c.Group.Rank()); m == nil || w < rank || w == rank && c.Group.ID() < m.Group.ID() {
				rank, m = w, c
			}
		}
	}
	return m, rank
}
