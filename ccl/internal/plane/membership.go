package plane

import (
	"slices"

	"github.com/goccl/goccl/internal/algo"
)

// membership is which ranks of the world have gone, as far as this process knows, and so which leads each host. Job.mu
// guards it, but for Topo, which is set while the job begins.
type membership struct {
	Topo    algo.Topology
	dead    map[int]bool    // ranks of the world that are known to be lost
	ended   map[int]bool    // lost ranks whose loss is certain: see lose
	doubted map[int]bool    // lost ranks that may have given this process up before: see mayBeOut
	leavers map[int]bool    // ranks of the world that are known to have left in good order
	fallen  map[int]bool    // ranks that are reported lost, whether the report is believed yet or not
	first   map[int]int     // by host, which of its ranks leads it, where that is not the first
	vacant  map[int]absence // hosts whose lead has gone, and the next has not come
	early   []hostClosed    // the last Comms that all ranks of another host have closed
}

func newMembership() membership {
	return membership{dead: map[int]bool{}, ended: map[int]bool{}, doubted: map[int]bool{}, leavers: map[int]bool{},
		fallen: map[int]bool{}, first: map[int]int{}, vacant: map[int]absence{}}
}

// absence says why a host has nobody on the control plane.
type absence uint8

const (
	leftHost absence = 1 + iota // its lead has left in good order
	lostHost
)

// lead is the rank of the world that leads host h, -1 if no rank of it is left. Job.mu is held.
func (m *membership) lead(h int) int {
	l := m.first[h]
	if l >= m.Topo.Locals(h) {
		return -1
	}
	return m.Topo.Rank(h, l)
}

// isAway reports whether rank w of the world is known to be gone. Job.mu is held.
func (m *membership) isAway(w int) bool { return m.leavers[w] || m.dead[w] }

// hasLeft reports whether rank w of the world has left in good order, as far as is known: where a lead has, and
// nobody has taken its place, all of its host have. Job.mu is held.
func (m *membership) hasLeft(w int) bool {
	return m.leavers[w] || !m.dead[w] && m.vacant[m.Topo.Node(w)] == leftHost
}

// lose notes that rank w of the world is lost. That is certain if its process was seen to end: the
// kernel's word of its death, the end of a local connection, a port that is refused where it
// listened. Otherwise it is suspected: it is silent or out of reach, and may live on the other side
// of a partition.
//
// The first word of a loss stands. A rank that was suspected first may have gone on with others,
// without this one, before it ended, so that its later end does not make it one that never did: see
// agree.Majority.
func (m *membership) lose(w int, certain bool) {
	if !m.dead[w] {
		m.dead[w] = true
		if certain {
			m.ended[w] = true
		}
	}
}

// leave notes that ranks have left in good order.
func (m *membership) leave(ranks []int) {
	for _, w := range ranks {
		m.leavers[w] = true
	}
}

// advance finds the lead of host h, of which ranks have gone, and reports whether it is another now.
func (m *membership) advance(h int, why absence) bool {
	l := m.first[h]
	for l < m.Topo.Locals(h) && (m.isAway(m.Topo.Rank(h, l)) || m.fallen[m.Topo.Rank(h, l)]) {
		l++
	}
	if l == m.first[h] {
		return false
	}
	m.first[h], m.vacant[h] = l, why
	return true
}

// staying lists the ranks of host h that are not known to have gone.
func (m *membership) staying(h int) (ranks []int) {
	for l := range m.Topo.Locals(h) {
		if w := m.Topo.Rank(h, l); !m.isAway(w) {
			ranks = append(ranks, w)
		}
	}
	return ranks
}

// occupy notes that the lead of host h has come.
func (m *membership) occupy(h int) { delete(m.vacant, h) }

// lowest reports whether no host before h has a lead.
func (m *membership) lowest(h int) bool {
	for i := range h {
		if m.lead(i) >= 0 {
			return false
		}
	}
	return true
}

// lowestLeft is the lowest rank of the world that is not known to have gone; of those that all have it is the last.
func (m *membership) lowestLeft() int {
	last := m.Topo.Size() - 1
	for w := range last {
		if !m.isAway(w) && !m.hasLeft(w) {
			return w
		}
	}
	return last
}

// reportingHost is the host whose process reports where all ranks stood: that of the lowest rank left.
func (m *membership) reportingHost() int { return m.Topo.Node(m.lowestLeft()) }

// reportsApart reports whether the reporting host is another one than that of rank w of the world,
// which is lost. If it is the same, its other ranks may be found to be lost in a moment, and with
// them the rank that reports.
func (m *membership) reportsApart(w int) bool { return m.Topo.Node(w) != m.reportingHost() }

// beside lists the hosts that h has connections with: those of the tree, and, of those that are
// left, the nearest on the ring. It is symmetric, while all know which have gone.
func (m *membership) beside(node int) []int {
	n := m.Topo.Nodes()
	var hosts []int
	add := func(h int) {
		if h != node && h < n && m.lead(h) >= 0 && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	if node > 0 {
		add((node - 1) / 2)
	}
	add(2*node + 1)
	add(2*node + 2)
	for _, step := range []int{1, n - 1} {
		for h, found := (node+step)%n, 0; h != node && found < ringReach; h = (h + step) % n {
			if m.lead(h) >= 0 {
				add(h)
				found++
			}
		}
	}
	return hosts
}

// ringReach is how many hosts each has a connection to in either direction of the ring: so
// many, less one, may go at once without dividing the others.
const ringReach = 2
