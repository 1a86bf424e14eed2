package shrink

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/internal/algo"
)

// Whoever is gone, each rank reaches one that speaks with the lead itself, through ranks that are not gone, and all of these list it
// among those that may be below them. Where nobody is gone, few speak through one.
func TestTree(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 5))
	uneven := make([]int, 100)
	for r := range uneven {
		uneven[r] = r * r / 7 % 23
	}
	hosts := 0
	for _, h := range group.Dense(uneven) {
		hosts = max(hosts, h+1)
	}
	for name, topo := range map[string]algo.Topology{
		"blocks":           algo.Blocks(40, 3),
		"one rank a host":  algo.Blocks(100, 1),
		"in turns":         algo.Placed([]int{0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2}),
		"in no order":      group.Topology(uneven, hosts),
		"all on one host":  algo.Flat(9),
		"of unequal sizes": algo.Placed([]int{0, 0, 0, 1, 2, 2, 3, 3, 3, 3, 4}),
	} {
		for _, lost := range []int{0, 1, 3} {
			t.Run(fmt.Sprintf("%s, %d gone", name, lost), func(t *testing.T) {
				tree, n := Tree{topo, 3}, topo.Size()
				gone := map[int]bool{}
				for _, r := range random.Perm(n)[:lost] {
					gone[r] = true
				}
				isGone := func(r int) bool { return gone[r] }
				through := map[int]int{}
				for r := range n {
					if gone[r] {
						continue
					}
					steps := 0
					for up := tree.Above(r, isGone); up >= 0; up = tree.Above(up, isGone) {
						require.False(t, gone[up])
						require.Contains(t, tree.Below(up), int32(r))
						require.LessOrEqual(t, topo.Node(up), topo.Node(r))
						if steps == 0 {
							through[up]++
						}
						steps++
						require.Less(t, steps, n, "in a circle")
					}
				}
				for r, k := range through {
					require.LessOrEqual(t, k, (3+topo.Locals(topo.Node(r))-1)*(1+lost), "through rank %d", r)
				}
			})
		}
	}
}
