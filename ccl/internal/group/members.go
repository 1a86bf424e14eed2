package group

// Members maps the ranks of a Comm to ranks of the world: start + i*stride, which
// is most of what mesh-shaped jobs split into, or a list.
type Members struct {
	start, Stride int
	List          []int32
}

func MembersOf(world []int) Members {
	if len(world) == 0 {
		return Members{}
	}
	m := Members{start: world[0], Stride: 1}
	if len(world) > 1 {
		m.Stride = world[1] - world[0]
	}
	for i, w := range world {
		if w != m.start+i*m.Stride {
			m.List = make([]int32, len(world))
			for i, w := range world {
				m.List[i] = int32(w)
			}
			break
		}
	}
	return m
}

func (m *Members) World(rank int) int {
	if m.List != nil {
		return int(m.List[rank])
	}
	return m.start + rank*m.Stride
}

// Rank is the inverse of world; -1 if w is no member. size is that of the Comm.
func (m *Members) Rank(w, size int) int {
	if m.List != nil {
		for i, x := range m.List {
			if int(x) == w {
				return i
			}
		}
		return -1
	}
	if m.Stride == 0 {
		if w == m.start {
			return 0
		}
		return -1
	}
	d := w - m.start
	if d%m.Stride != 0 || d/m.Stride < 0 || d/m.Stride >= size {
		return -1
	}
	return d / m.Stride
}
