package cpu

// members maps the ranks of a Comm to ranks of the world: start + i*stride, which
// is most of what mesh-shaped jobs split into, or a list.
type members struct {
	start, stride int
	list          []int32
}

func membersOf(world []int) members {
	if len(world) == 0 {
		return members{}
	}
	m := members{start: world[0], stride: 1}
	if len(world) > 1 {
		m.stride = world[1] - world[0]
	}
	for i, w := range world {
		if w != m.start+i*m.stride {
			m.list = make([]int32, len(world))
			for i, w := range world {
				m.list[i] = int32(w)
			}
			break
		}
	}
	return m
}

func (m *members) world(rank int) int {
	if m.list != nil {
		return int(m.list[rank])
	}
	return m.start + rank*m.stride
}

// rank is the inverse of world; -1 if w is no member. size is that of the Comm.
func (m *members) rank(w, size int) int {
	if m.list != nil {
		for i, x := range m.list {
			if int(x) == w {
				return i
			}
		}
		return -1
	}
	if m.stride == 0 {
		if w == m.start {
			return 0
		}
		return -1
	}
	d := w - m.start
	if d%m.stride != 0 || d/m.stride < 0 || d/m.stride >= size {
		return -1
	}
	return d / m.stride
}
