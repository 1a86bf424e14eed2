package rounds

import (
	"testing"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// All ranks get the sum, whatever its size and the way, and whether the result is where the operand was.
func TestAllReduce(t *testing.T) {
	everyWay(t, func(t *testing.T, all []*Team, count int) {
		want := sumOf(len(all), 0, count)
		for _, inPlace := range []bool{false, true} {
			atOnce(t, all, func(c *Team) *call.Fault {
				src := vector(c.Me, 0, count)
				dst := src
				if !inPlace {
					dst = make([]int32, count)
				}
				f := run(t, c, callOf(call.AllReduce, -1, count, dst, src))
				same(t, want, dst, "rank %d, %d elements, in place %v", c.Me, count, inPlace)
				if !inPlace {
					same(t, vector(c.Me, 0, count), src, "an operand has changed")
				}
				return f
			})
		}
	})
}

// An average is the sum divided once, at the end.
func TestAverage(t *testing.T) {
	everyWay(t, func(t *testing.T, all []*Team, count int) {
		want := sumOf(len(all), 0, count)
		for i := range want {
			want[i] /= int32(len(all))
		}
		atOnce(t, all, func(c *Team) *call.Fault {
			dst := make([]int32, count)
			k := callOf(call.AllReduce, -1, count, dst, vector(c.Me, 0, count))
			k.Scale = reduce.Scale(op.Int32)
			f := run(t, c, k)
			same(t, want, dst, "rank %d, %d elements", c.Me, count)
			return f
		})
	})
}

// Only the root gets the sum of a Reduce.
func TestReduce(t *testing.T) {
	everyWay(t, func(t *testing.T, all []*Team, count int) {
		for root := range all {
			atOnce(t, all, func(c *Team) *call.Fault {
				var dst, want []int32
				if c.Me == root {
					dst, want = make([]int32, count), sumOf(len(all), 0, count)
				}
				f := run(t, c, callOf(call.Reduce, root, count, dst, vector(c.Me, 0, count)))
				same(t, want, dst, "rank %d of root %d, %d elements", c.Me, root, count)
				return f
			})
		}
	})
}

// Each rank gets the sum of its block: of blocks of one length, and of several lengths.
func TestReduceScatter(t *testing.T) {
	everyWay(t, func(t *testing.T, all []*Team, count int) {
		n := len(all)
		for _, kind := range []call.Kind{call.ReduceScatter, call.ReduceScatterV} {
			counts, total := make([]int, n), 0
			for r := range counts {
				if counts[r] = count; kind == call.ReduceScatterV {
					counts[r] = count * r / (n - 1)
				}
				total += counts[r]
			}
			atOnce(t, all, func(c *Team) *call.Fault {
				dst := make([]int32, counts[c.Me])
				k := callOf(kind, -1, count, dst, blocks(n, func(q int) []int32 { return vector(c.Me, q, counts[q]) }))
				if kind == call.ReduceScatterV {
					k.DC, k.Count = counts, uint64(total)
				}
				f := run(t, c, k)
				same(t, sumOf(n, c.Me, counts[c.Me]), dst, "rank %d, %v", c.Me, counts)
				return f
			})
		}
	})
}
