package rounds

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// minus computes a - b: of a reduction by it, the order of the operands can be told.
func minus(dst, a, b unsafe.Pointer, n int) {
	d, x, y := unsafe.Slice((*int32)(dst), n), unsafe.Slice((*int32)(a), n), unsafe.Slice((*int32)(b), n)
	for i := range d {
		d[i] = x[i] - y[i]
	}
}

// difference is value of rank 0 less those of the other ranks of n.
func difference(n, count int) []int32 {
	v := vector(0, 0, count)
	for r := 1; r < n; r++ {
		for i := range v {
			v[i] -= value(r, 0, i)
		}
	}
	return v
}

// Two ranks reduce in the order of ranks, on both.
func TestFoldTwo(t *testing.T) {
	for me, c := range ranksOf(t, 2, byDirect) {
		const n = 100
		dst := make([]int32, n)
		k := callOf(call.AllReduce, -1, n, dst, vector(me, 0, n))
		k.Fold = minus
		own, theirs := bytesOf(vector(me, 0, n)), bytesOf(vector(1-me, 0, n))
		c.sums.foldTwo(k, op.Ptr(k.Dst), op.Ptr(own), op.Ptr(theirs), 4*n)
		assert.Equal(t, difference(2, n), dst, "rank %d", me)
		k.Scale = reduce.Scale(op.Int32)
		c.sums.foldTwo(k, op.Ptr(k.Dst), op.Ptr(own), op.Ptr(theirs), 4*n)
		assert.Equal(t, difference(2, n)[7]/2, dst[7], "rank %d: an average", me)
	}
}

// What has been posted is reduced in the order of ranks, from where each rank's part begins; what stands for the own slot
// is taken from there. More than one piece of work gives the same.
func TestFoldAll(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, tc := range []struct {
			name   string
			inSlot bool
			from   int // elements
			own    bool
			count  int
		}{
			{"slots", true, 0, false, 50},
			{"slots, a part", true, 10, false, 40},
			{"staging memory", false, 0, false, tuning.FoldPiece/4 + 100},
			{"staging memory, a part", false, 16, false, tuning.ClaimPiece/2 + 100},
			{"staging memory, and the own operand", false, 0, true, tuning.ClaimPiece/2 + 100},
		} {
			t.Run(fmt.Sprintf("%d ranks, %s", n, tc.name), func(t *testing.T) {
				all := ranksOf(t, n, byStage)
				whole := tc.from + tc.count
				inSlot := noSlot
				if tc.inSlot {
					inSlot = 4 * whole
				}
				dst := make([]int32, tc.count)
				k := callOf(call.AllReduce, -1, tc.count, dst, nil)
				k.Fold, k.Stream = minus, minus
				round := all[0].rank.Order.Round + 1
				for r, c := range all {
					require.Nil(t, c.slots.place(t.Context(), k, round, inSlot))
					to, f := c.staging.slotOf(r, round, inSlot)
					require.Nil(t, f)
					v := vector(r, 0, whole)
					if r == 1 && tc.own {
						clear(v) // it is not to be read
					}
					ordered.Put(to, bytesOf(v))
				}
				var own unsafe.Pointer
				if tc.own {
					own = unsafe.Pointer(unsafe.SliceData(vector(1, 0, whole)))
				}
				f := all[1].sums.foldAll(k, op.Ptr(k.Dst), round, inSlot, func(int) int { return 4 * tc.from }, own, 4*tc.count, false)
				require.Nil(t, f)
				same(t, difference(n, whole)[tc.from:], dst, "reduced")
			})
		}
	}
}

// Three bfloat16 whose sum, rounded after each addition, is another: it is rounded once, whatever the way.
func TestSumIsRoundedOnce(t *testing.T) {
	const one, tiny, want = 0x3f80, 0x3b80, 0x3f81 // 1, 2^-8 and 1 + 2^-7: the first half of a step alone rounds to even
	for w, name := range []string{byStage: "staged", byRead: "read", byDirect: "in place"} {
		for _, n := range []int{30, 40_000} {
			t.Run(fmt.Sprintf("%s, %d", name, n), func(t *testing.T) {
				all := ranksOf(t, 3, way(w))
				atOnce(t, all, func(c *Team) *call.Fault {
					src, dst := make([]uint16, n), make([]uint16, n)
					for i := range src {
						if src[i] = tiny; c.me == 0 {
							src[i] = one
						}
					}
					mem := func(v []uint16) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 2*n) }
					k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.AllReduce, Root: -1, Count: uint64(n)}}, Dst: mem(dst), Src: mem(src), Elem: 2, Fold: reduce.For(op.BFloat16, op.Sum), Stream: reduce.ForStream(op.BFloat16, op.Sum), All: reduce.ForSumAll(op.BFloat16, op.Sum)}
					f := run(t, c, k)
					for i, x := range dst {
						if x != want {
							t.Errorf("element %d is %#x, not %#x", i, x, want)
							break
						}
					}
					return f
				})
			})
		}
	}
}

// What is read from other processes is reduced in the order of ranks, of any part of the operands, also where it ends in the
// midst of a piece; the own operand may be where the result goes.
func TestReduceByRead(t *testing.T) {
	for _, n := range []int{2, 3} {
		all := ranksOf(t, n, byRead)
		const whole, from, count = 100_000, 30_000, 2*tuning.ReadPiece/4 + 5
		vectors := make([][]int32, n)
		for r := range vectors {
			vectors[r] = vector(r, 0, whole)
		}
		for me, c := range all {
			for r, v := range vectors {
				c.offers.posted[r] = c.offers.newOffer(bytesOf(v), nil)
			}
			dst := make([]int32, count)
			k := callOf(call.AllReduce, -1, whole, dst, vectors[me])
			k.Fold = minus
			enter(c, k)
			require.Nil(t, c.sums.reduceByRead(t.Context(), k, k.Dst, 4*from))
			same(t, difference(n, whole)[from:from+count], dst, "rank %d of %d", me, n)

			own := vector(me, 0, whole)
			k.Src, k.Dst = bytesOf(own), bytesOf(own)
			require.Nil(t, c.sums.reduceByRead(t.Context(), k, bytesOf(own[from:from+count]), 4*from))
			same(t, dst, own[from:from+count], "rank %d of %d, in place", me, n)
		}
	}
}

// Room for operands is kept, and made anew for another number of them.
func TestOperands(t *testing.T) {
	var c sums
	three := c.operands(3)
	assert.Len(t, three, 3)
	assert.Same(t, &three[0], &c.operands(3)[0])
	assert.Len(t, c.operands(5), 5)
}

// floats is what rank r has: numbers whose sum depends on the order in which they are added.
func floats(r, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.Ldexp(1+float64(r*7+i)/64, (r*5+i)%23-11))
	}
	return v
}

// floatBytes is the memory of v.
func floatBytes(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// A small sum has the bits of adding in rank order, in each call of a long row among barriers; an average is divided once; results
// may lie where the operands were.
func TestSmallSumsInRankOrder(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8, 16} {
		all := ranksOf(t, n, byDirect)
		for _, count := range []int{0, 1, 2, 14, 15, 64} {
			want := floats(0, count)
			for r := 1; r < n; r++ {
				for i, x := range floats(r, count) {
					want[i] += x
				}
			}
			atOnce(t, all, func(c *Team) *call.Fault {
				for lap := range 20 {
					src, dst := floats(c.me, count), make([]float32, count)
					if lap%2 == 1 {
						dst = src
					}
					k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.AllReduce, Root: -1, Count: uint64(count)}}, Dst: floatBytes(dst), Src: floatBytes(src), Elem: 4,
						Fold: reduce.For(op.Float32, op.Sum)}
					if lap%5 == 0 {
						k.Scale = reduce.Scale(op.Float32)
					}
					if f := run(t, c, k); f != nil {
						return f
					}
					for i, x := range want {
						if k.Scale != nil {
							x /= float32(n)
						}
						if math.Float32bits(dst[i]) != math.Float32bits(x) {
							t.Errorf("%d ranks, %d elements: rank %d has %v, not %v", n, count, c.me, dst[i], x)
							break
						}
					}
					if lap%3 == 0 {
						if f := run(t, c, barrier()); f != nil {
							return f
						}
					}
				}
				return nil
			})
		}
	}
}
