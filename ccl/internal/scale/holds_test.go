package scale

import (
	"net/netip"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
)

// tables are what a process holds of all ranks of a job: see docs/costs.md.
type tables struct {
	book  tcp.Book
	topo  algo.Topology
	comms []comm
}

// comm is what it holds of all ranks of a Comm.
type comm struct {
	members group.Members
	topo    algo.Topology
}

// tablesOf are those of a process of rank 0 of n, which lie on hosts as place says, with 10 Comms of a mesh of four dimensions: one
// along each, and one in each plane of two.
func tablesOf(n, hosts int, place func(r int) int) *tables {
	addrs, nodeOf := make([]netip.AddrPort, n), make([]int, n)
	for r := range n {
		h := place(r)
		nodeOf[r] = h
		addrs[r] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(h >> 16), byte(h >> 8), byte(h)}), uint16(40_000+r%20_000))
	}
	t := &tables{book: tcp.BookOf(addrs...), topo: group.Topology(nodeOf, hosts)}
	dims := [4]int{2, 2, 2, n / 8}
	stride := [4]int{n / 2, n / 4, n / 8, 1}
	for a := range dims {
		for b := a; b < len(dims); b++ {
			var world, node []int
			for i := range dims[a] {
				for j := range dims[b] {
					r := i*stride[a] + j*stride[b]
					if a == b {
						r = i * stride[a]
					}
					world, node = append(world, r), append(node, nodeOf[r])
					if a == b {
						break
					}
				}
			}
			node = group.Dense(node)
			most := 0
			for _, h := range node {
				most = max(most, h)
			}
			t.comms = append(t.comms, comm{group.MembersOf(world), group.Topology(node, most+1)})
		}
	}
	return t
}

// inUse is the heap in use.
func inUse() int64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestTables prints what a process holds of the ranks of its job, from the structures themselves, as jobs grow.
func TestTables(t *testing.T) {
	t.Log("| ranks | on a host | placed | bytes of a process | a rank of the job | of a host, a rank |")
	for _, tc := range []struct {
		name  string
		place func(n, hosts int) func(r int) int
		most  int64 // bytes a rank, in a large job
	}{
		{"in blocks", func(n, hosts int) func(int) int { return func(r int) int { return r / (n / hosts) } }, 16},
		{"in turns", func(n, hosts int) func(int) int { return func(r int) int { return r % hosts } }, 64},
	} {
		for _, perHost := range []int{1, 4, 12} {
			for _, n := range []int{8, 64, 512, 1000, 120_960} {
				n -= n % (8 * perHost)
				if n == 0 {
					continue
				}
				before := inUse()
				held := tablesOf(n, n/perHost, tc.place(n, n/perHost))
				bytes := inUse() - before
				t.Logf("| %d | %d | %s | %d | %.1f | %.1f |", n, perHost, tc.name, bytes, float64(bytes)/float64(n), float64(bytes)/float64(n)*float64(perHost))
				if n > 100_000 {
					require.LessOrEqual(t, bytes/int64(n), tc.most)
					if tc.most == 16 {
						require.LessOrEqual(t, bytes*int64(perHost)/int64(n), int64(64), "a rank, on its host")
					}
				}
				runtime.KeepAlive(held)
			}
		}
	}
}
