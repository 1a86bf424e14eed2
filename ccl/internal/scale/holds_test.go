package scale

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/internal/algo"
)

// tables are what a process holds of all ranks of a job: see docs/costs.md.
type tables struct {
	book  group.Book
	topo  algo.Topology
	comms []comm
}

// comm is what it holds of all ranks of a Comm.
type comm struct {
	members group.Members
	topo    algo.Topology
}

// tablesOf are those of a process of rank 0 of n, which lie on hosts as place says, with 10 Comms of a mesh of these
// dimensions: one along each, and one in each plane of two.
func tablesOf(n, hosts int, place func(r int) int, dims [4]int) *tables {
	addrs, nodeOf := make([]netip.AddrPort, n), make([]int, n)
	for r := range n {
		h := place(r)
		nodeOf[r] = h
		addrs[r] = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, byte(h >> 16), byte(h >> 8), byte(h)}), uint16(40_000+r%20_000))
	}
	t := &tables{topo: group.Topology(nodeOf, hosts)}
	t.book = group.BookOf(t.topo, addrs...)
	stride := [4]int{dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}
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
			t.comms = append(t.comms, comm{group.MembersOf(world), group.Topology(node, 1+slices.Max(node))})
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

// heldBy is how much heap the tables of such a job take. What the runtime allocates meanwhile is noise of some kilobytes, which
// the lesser of two measurements has not, and which is none of a large job.
func heldBy(n, perHost int, place func(n, hosts int) func(r int) int, dims [4]int) int64 {
	least := int64(math.MaxInt64)
	for range 1 + min(1, 10_000/n) {
		of := place(n, n/perHost)
		before := inUse()
		held := tablesOf(n, n/perHost, of, dims)
		least = min(least, inUse()-before)
		runtime.KeepAlive(held)
		runtime.KeepAlive(of)
	}
	return least
}

// TestTables prints what a process holds of the ranks of its job, from the structures themselves, as jobs grow: with the longest
// dimension of the mesh as the first or the last, whichever takes more.
func TestTables(t *testing.T) {
	t.Log("| ranks | on a host | placed | bytes of a process | a rank of the job | of a host, a rank |")
	for _, tc := range []struct {
		name   string
		place  func(n, hosts int) func(r int) int
		inAim  bool // 16 bytes a rank in a process, 64 on its host
		atMost int64
	}{
		{"in blocks", func(n, hosts int) func(int) int { return func(r int) int { return r / (n / hosts) } }, true, 16},
		{"in turns", func(n, hosts int) func(int) int { return func(r int) int { return r % hosts } }, true, 16},
		{"in no order", func(n, hosts int) func(int) int {
			order := rand.New(rand.NewPCG(1, 2)).Perm(n)
			return func(r int) int { return order[r] % hosts }
		}, false, 24},
	} {
		for _, perHost := range []int{1, 4, 12} {
			for _, n := range []int{8, 64, 512, 1000, 120_960} {
				n -= n % (8 * perHost)
				if n == 0 {
					continue
				}
				bytes := max(heldBy(n, perHost, tc.place, [4]int{2, 2, 2, n / 8}), heldBy(n, perHost, tc.place, [4]int{n / 8, 2, 2, 2}))
				t.Logf("| %d | %d | %s | %d | %.1f | %.1f |", n, perHost, tc.name, bytes, float64(bytes)/float64(n), float64(bytes)/float64(n)*float64(perHost))
				if n > 100_000 {
					require.LessOrEqual(t, bytes/int64(n), tc.atMost)
					if tc.inAim {
						require.LessOrEqual(t, bytes*int64(perHost)/int64(n), int64(64), "a rank, on its host")
					}
				}
			}
		}
	}
}
