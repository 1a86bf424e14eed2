package rounds

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Calls of all kinds, sizes and roots follow one another, and a rank is now ahead and now behind: no slot, ring or staged chunk
// is written to before all have read what was there, whoever had it the last time.
func TestMixedCalls(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, large := range []bool{false, true} {
			for _, start := range []uint32{0, ^uint32(1000)} {
				t.Run(fmt.Sprintf("%d ranks, large rings %v, from round %d", n, large, start), func(t *testing.T) {
					ringOf(t, 0)
					if swapFrom(t, large); large {
						ringOf(t, 2<<20)
					}
					testMixedCalls(t, n, start, large)
				})
			}
		}
	}
}

func testMixedCalls(t *testing.T, n int, start uint32, crowded bool) {
	calls := 2000
	if testing.Short() {
		calls = 400
	}
	all := ranksOf(t, n, byStage)
	for _, c := range all {
		c.local.Crowded = crowded && n > 2
		if start != 0 {
			c.rank.Order.BeginAt(start)
			c.slots.begin(start)
		}
	}
	atOnce(t, all, func(c *Team) *call.Fault {
		random, own := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, uint64(c.me)))
		root := 0
		for i := range calls {
			count := 1 + random.IntN(tuning.SlotRoom(2)/4)
			if random.IntN(20) == 0 {
				count = 1 + random.IntN(tuning.StageChunk(n)/4)
			}
			kind := random.IntN(len(moved) + 3)
			if i%100 == 0 {
				root = random.IntN(n)
			}
			if i/100%2 == 1 { // a hundred calls of one root, which runs ahead
				kind = len(moved) + 1
			} else {
				root = random.IntN(n)
			}
			var f *call.Fault
			switch {
			case kind < len(moved):
				m := moved[kind]
				if !m.root {
					root = -1
				}
				want := m.want(c.me, n, root, count)
				dst := make([]int32, len(want))
				f = run(t, c, callOf(m.kind, root, count, dst, m.src(c.me, n, root, count)))
				same(t, want, dst, "call %d, %s of %d elements, rank %d of root %d", i, m.name, count, c.me, root)
			case kind == len(moved)+2:
				var dst, want []int32
				if c.me == root {
					dst, want = make([]int32, count), sumOf(n, i, count)
				}
				f = run(t, c, callOf(call.Reduce, root, count, dst, vector(c.me, i, count)))
				same(t, want, dst, "call %d, Reduce of %d elements, rank %d of root %d", i, count, c.me, root)
			case kind == len(moved):
				dst := make([]int32, count)
				f = run(t, c, callOf(call.AllReduce, -1, count, dst, vector(c.me, i, count)))
				same(t, sumOf(n, i, count), dst, "call %d, AllReduce of %d elements, rank %d", i, count, c.me)
			default:
				dst := make([]int32, count)
				if c.me == root {
					dst = vector(root, i, count)
				}
				f = run(t, c, callOf(call.Broadcast, root, count, dst, nil))
				same(t, vector(root, i, count), dst, "call %d, Broadcast of %d elements, rank %d of root %d", i, count, c.me, root)
			}
			if f != nil || t.Failed() {
				return f
			}
			for range own.IntN(3) * own.IntN(10) {
				runtime.Gosched()
			}
		}
		return run(t, c, barrier())
	})
}
