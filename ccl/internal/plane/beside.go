package plane

import "github.com/goccl/goccl/internal/algo"

// Beside lists the hosts with which a host has connections on the control plane, in a job placed
// so, of which those hosts are gone. A job asks membership.beside; this is for package scale, which
// has no job.
func Beside(topo algo.Topology, node int, gone map[int]bool) []int {
	m := newMembership()
	m.Topo = topo
	for h := range gone {
		m.first[h] = topo.Locals(h)
	}
	return m.beside(node)
}
