package rounds

import (
	"fmt"
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

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

// Every form gives the bits of adding in rank order, in each call of a long row, among barriers and calls that go another
// way; an average is divided once; results may lie where the operands were.
func TestGroupedAllReduce(t *testing.T) {
	for _, n := range []int{3, 5, 8, 11, 16} {
		all := ranksOf(t, n, byDirect)
		for _, f := range forms(n, 5) {
			inForm(all, f)
			most := max(all[0].Local.Form.Most, 64)
			for _, count := range []int{0, 1, 2, most / 4, most/4 + 1} {
				want := make([]float32, count)
				for i := range want {
					want[i] = floats(0, count)[i]
					for r := 1; r < n; r++ {
						want[i] += floats(r, count)[i]
					}
				}
				atOnce(t, all, func(c *Team) *call.Fault {
					for lap := range 20 {
						src, dst := floats(c.Me, count), make([]float32, count)
						if lap%2 == 1 {
							dst = src
						}
						k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.AllReduce, Root: -1, Count: uint64(count)}}, Dst: floatBytes(dst), Src: floatBytes(src), Elem: 4, Fold: reduce.For(op.Float32, op.Sum)}
						if lap%5 == 0 {
							k.Scale = reduce.Scale(op.Float32)
						}
						if f := run(t, c, k); f != nil {
							return f
						}
						for i := range want {
							x := want[i]
							if k.Scale != nil {
								x /= float32(n)
							}
							if math.Float32bits(dst[i]) != math.Float32bits(x) {
								t.Errorf("%d ranks, %+v, %d elements: rank %d has %v, not %v", n, f, count, c.Me, dst[i], x)
								break
							}
						}
						if lap%3 == 0 {
							if f := run(t, c, barrier()); f != nil {
								return f
							}
						}
						if lap%7 == 0 {
							got := make([]int32, n)
							if f := run(t, c, callOf(call.AllGather, -1, 1, got, []int32{int32(c.Me)})); f != nil {
								return f
							}
							for r, x := range got {
								if x != int32(r) {
									t.Errorf("AllGather: %v", got)
								}
							}
						}
					}
					return nil
				})
			}
		}
	}
}

// Sums of 16-bit floats are rounded once in every form.
func TestGroupedSumIsRoundedOnce(t *testing.T) {
	const one, tiny, want = 0x3f80, 0x3b80, 0x3f81 // as in TestSumIsRoundedOnce, with 2 of 5 ranks that have something
	for _, f := range forms(5, 4) {
		all := ranksOf(t, 5, byDirect)
		inForm(all, f)
		atOnce(t, all, func(c *Team) *call.Fault {
			src, dst := []uint16{0}, []uint16{0}
			switch c.Me {
			case 0:
				src[0] = one
			case 2, 4:
				src[0] = tiny
			}
			mem := func(v []uint16) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 2) }
			k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.AllReduce, Root: -1, Count: 1}}, Dst: mem(dst), Src: mem(src), Elem: 2, Fold: reduce.For(op.BFloat16, op.Sum), All: reduce.ForSumAll(op.BFloat16, op.Sum)}
			fault := run(t, c, k)
			assert.EqualValues(t, want, dst[0], "%+v: rank %d", f, c.Me)
			return fault
		})
	}
}

// Every collective, of every size, and after it the next, is right while small calls are grouped.
func TestCollectivesInForms(t *testing.T) {
	for _, f := range forms(7, 4) {
		for w, name := range []string{byStage: "staged", byRead: "read", byDirect: "in place"} {
			t.Run(fmt.Sprintf("%+v, %s", f, name), func(t *testing.T) {
				all := ranksOf(t, 7, way(w))
				inForm(all, f)
				for _, count := range sizes(7) {
					for _, kind := range []call.Kind{call.AllReduce, call.Reduce, call.Barrier, call.Broadcast, call.AllReduce, call.AllGather} {
						atOnce(t, all, func(c *Team) *call.Fault { return runKind(t, c, kind, count) })
					}
				}
			})
		}
	}
}

// runKind makes a call of a kind with root 1, and checks what it leaves.
func runKind(t *testing.T, c *Team, kind call.Kind, count int) *call.Fault {
	src, dst := vector(c.Me, 0, count), make([]int32, count)
	root, want := 1, sumOf(c.N, 0, count)
	switch {
	case kind == call.AllReduce || kind == call.Barrier:
		root = -1
	case kind == call.Broadcast:
		if c.Me == root {
			copy(dst, src)
		}
		src, want = dst, vector(root, 0, count)
	case kind == call.AllGather:
		root, dst, want = -1, make([]int32, c.N*count), nil
		for r := range c.N {
			want = append(want, vector(r, 0, count)...)
		}
	case c.Me != root: // of a Reduce
		dst, want = nil, nil
	}
	f := run(t, c, callOf(kind, root, count, dst, src))
	if kind != call.Barrier {
		same(t, want, dst, "%v: rank %d, %d elements", kind, c.Me, count)
	}
	return f
}

// A rank that makes another call is found by its leader, by the members of other groups, or by itself, whoever it is.
func TestGroupedMismatch(t *testing.T) {
	const n = 7
	for _, f := range forms(n, 3) {
		for odd := range n {
			all := ranksOf(t, n, byDirect)
			inForm(all, f)
			ks := make([]*call.Call, n)
			for r, c := range all {
				ks[r] = callOf(call.AllReduce, -1, 1, make([]int32, 1), []int32{1})
				if r == odd {
					ks[r] = callOf(call.AllReduce, -1, 2, make([]int32, 2), []int32{1, 1})
				}
				enter(c, ks[r])
			}
			first := all[0].Round + 1
			for r, c := range all { // all have posted what they can without waiting
				c.post(ks[r], first)
			}
			found := 0
			for me := range n {
				for _, s := range pattern(f, n, me) {
					if s.do != await || s.round > 0 || (s.rank == odd) == (me == odd) {
						continue
					}
					fault := all[me].await(ended(t), ks[me], s.rank, first)
					require.NotNil(t, fault)
					require.Equal(t, call.Mismatch, fault.Code)
					found++
				}
			}
			require.NotZero(t, found, "%+v: rank %d", f, odd)
		}
	}
}

// Grouped calls allocate nothing.
func TestGroupedAllocates(t *testing.T) {
	for _, f := range forms(6, 3) {
		all := ranksOf(t, 6, byDirect)
		inForm(all, f)
		ks := make([]*call.Call, 6)
		for r := range ks {
			ks[r] = callOf(call.AllReduce, -1, 2, make([]int32, 2), []int32{1, 2})
		}
		laps := func(laps int) func() {
			return func() {
				atOnce(t, all, func(c *Team) *call.Fault {
					for range laps {
						if f := run(t, c, ks[c.Me]); f != nil {
							return f
						}
					}
					return nil
				})
			}
		}
		few, many := testing.AllocsPerRun(3, laps(10)), testing.AllocsPerRun(3, laps(110))
		assert.Less(t, many-few, 50.0, "%+v: 100 calls of 6 ranks", f)
	}
}
