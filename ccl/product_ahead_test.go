package ccl_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// One rank sends to all others, or all others to one, in many calls one after another, of payloads that lie in the slots. Whoever
// receives begins late, so that whoever sends is ahead by all that there is room for: nothing is overwritten before it has been
// read. Where a random rank is the root of each call nobody gets ahead.
func TestProductAhead(t *testing.T) {
	bursts := 40
	if testing.Short() {
		bursts = 6
	}
	for _, n := range []int{2, 3, 4, 5, 9} {
		for _, opts := range [][]ccltest.Option{nil, {ccltest.Processes(2)}, {ccltest.Processes(n)}} {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				random := rand.New(rand.NewPCG(1, uint64(n))) // the same on all ranks
				for burst := range bursts {
					root, toAll := random.IntN(n), random.IntN(2) == 0
					if (c.Rank() == root) != toAll {
						time.Sleep(time.Duration(1+c.Rank()) * time.Millisecond)
					}
					for call := range 100 {
						count := []int{1, 7, 8, 128, 256, 400, 512, 1023, 1024}[random.IntN(9)]
						if err := ahead(t, c, count, root, toAll, random.IntN(2) == 0, int64(1000*burst+call)); err != nil {
							t.Fatalf("%d ranks, burst %d, call %d, %d elements, root %d, to all %v: %v", n, burst, call, count, root, toAll, err)
						}
					}
				}
			}, opts...)
		}
	}
}

// ahead makes a call with a root, which is number v, and checks what it leaves.
func ahead(t testing.TB, c *ccl.Comm, count, root int, toAll, blocks bool, v int64) error {
	n, me := c.Size(), c.Rank()
	of := func(r int) []int64 { // what rank r sends, or is sent
		x := make([]int64, count)
		for i := range x {
			x[i] = v*1_000_000 + int64(r)*10_000 + int64(i)
		}
		return x
	}
	var got, want []int64
	var err error
	switch {
	case toAll && blocks:
		var all []int64
		for r := 0; me == root && r < n; r++ {
			all = append(all, of(r)...)
		}
		got, want = make([]int64, count), of(me)
		err = ccl.Scatter(t.Context(), c, got, all, root)
	case toAll:
		if got, want = make([]int64, count), of(root); me == root {
			copy(got, want)
		}
		err = ccl.Broadcast(t.Context(), c, got, root)
	case blocks:
		for r := 0; me == root && r < n; r++ {
			want = append(want, of(r)...)
		}
		got = make([]int64, len(want))
		err = ccl.Gather(t.Context(), c, got, of(me), root)
	default:
		for r := 0; me == root && r < n; r++ {
			for i, x := range of(r) {
				if r == 0 {
					want = append(want, 0)
				}
				want[i] += x
			}
		}
		got = make([]int64, len(want))
		err = ccl.Reduce(t.Context(), c, got, of(me), ccl.Sum, root)
	}
	for i := range want {
		if err == nil && got[i] != want[i] {
			err = fmt.Errorf("blocks %v: element %d is %d, not %d", blocks, i, got[i], want[i])
		}
	}
	return err
}
