package scale

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/test/program"
)

// holds says what a process holds once it has joined, and once it has the Comms of a mesh.
func holds(ctx context.Context, c *ccl.Comm) error {
	before := heap()
	fmt.Println("joined-heap", before, "joined-descriptors", descriptors(), "joined-resident", program.KiB("/proc/self/status", "VmRSS:")<<10)
	// The ranks as a mesh: 2 x 2 x 2 x the rest. A rank has 10 Comms of it: one for each dimension, and for six planes.
	at := [4]int{c.Rank() & 1, c.Rank() >> 1 & 1, c.Rank() >> 2 & 1, c.Rank() >> 3}
	var comms []*ccl.Comm
	for a := range 4 {
		for b := a; b < 4; b++ {
			color := 0 // of those that differ in dimensions a and b alone
			for d, x := range at {
				if d != a && d != b {
					color = color*(c.Size()+1) + x
				}
			}
			s, err := c.Split(ctx, color, c.Rank())
			if err != nil {
				return err
			}
			comms = append(comms, s)
		}
	}
	for _, s := range comms {
		v := []int64{1}
		if err := ccl.AllReduce(ctx, s, v, v, ccl.Sum); err != nil {
			return err
		}
		if v[0] != int64(s.Size()) {
			return fmt.Errorf("rank %d: wrong sum %d of %d", c.Rank(), v[0], s.Size())
		}
	}
	fmt.Println("mesh-heap", heap()-before, "mesh-descriptors", descriptors(), "mesh-proportional", program.KiB("/proc/self/smaps_rollup", "Pss:")<<10)
	if err := ccl.Barrier(ctx, c); err != nil {
		return err
	}
	for _, s := range comms {
		if err := s.Close(); err != nil {
			return err
		}
	}
	return nil
}

// TestHolds prints what a process holds as jobs grow, with four ranks on a host, and in a large one
// what each rank of a job so adds to every process of it.
func TestHolds(t *testing.T) {
	sizes := []int{8, *ranks}
	for n := 64; n < *ranks; n *= 4 {
		sizes = append(sizes, n)
	}
	slices.Sort(sizes)
	most := func(v []int64) int64 { return slices.Max(v) }
	t.Log("| ranks, 4 on a host | heap of a process, joined | descriptors | 10 Comms of a mesh add | descriptors with these | job, proportional |")
	var heaps []int64 // of the process in the middle, by size
	for _, n := range sizes {
		f, err := job(t, n, n/4, "holds")
		require.NoError(t, err)
		require.Len(t, f["mesh-heap"], n)
		t.Logf("| %d | %d kB | %d | %d kB | %d | %d MB |", n, most(f["joined-heap"])>>10, most(f["joined-descriptors"]),
			most(f["mesh-heap"])>>10, most(f["mesh-descriptors"]), program.Total(f["mesh-proportional"])>>20)
		slices.Sort(f["joined-heap"])
		heaps = append(heaps, f["joined-heap"][n/2])
		require.Less(t, most(f["joined-heap"]), int64(4<<20))
	}
	if first, last := 0, len(sizes)-1; sizes[last] >= 500 { // in a smaller job other things differ more
		t.Logf("each rank of a job adds %d bytes to every process", (heaps[last]-heaps[first])/int64(sizes[last]-sizes[first]))
	}
}
