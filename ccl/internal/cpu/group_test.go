package cpu

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// callOf is a call on int32, with the sum.
func callOf(kind call.Kind, root, count int, dst, src []int32) *call.Call {
	b := func(v []int32) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v)) }
	k := &call.Call{Head: op.Head{Record: call.Record{Kind: kind, Type: 5, Root: int32(root), Count: uint64(count)}, To: root}, Elem: 4, Dst: b(dst), Src: b(src), Fold: reduce.For(op.Int32, op.Sum), Stream: reduce.ForStream(op.Int32, op.Sum)}
	k.Seal()
	return k
}

// Calls of one kind, type, operator and root are one, as many as come first and fit; others are made alone.
func TestFusible(t *testing.T) {
	c := comms(t, []string{"a", "a"})[0]
	of := func(kind call.Kind, root, count int) *call.Call { return callOf(kind, root, count, nil, nil) }
	other := func(k *call.Call, change func(k *call.Call)) *call.Call { change(k); return k }
	small := func() *call.Call { return of(call.AllReduce, -1, 10) }
	for _, tc := range []struct {
		name  string
		calls []*call.Call
		want  int
	}{
		{"one", []*call.Call{small()}, 1},
		{"three", []*call.Call{small(), of(call.AllReduce, -1, 1), small()}, 3},
		{"another kind", []*call.Call{small(), small(), of(call.Broadcast, 0, 10)}, 2},
		{"another type", []*call.Call{small(), other(small(), func(k *call.Call) { k.Type = 6 })}, 1},
		{"another operator", []*call.Call{small(), other(small(), func(k *call.Call) { k.Op = 2 })}, 1},
		{"another root", []*call.Call{of(call.Reduce, 0, 1), of(call.Reduce, 0, 1), of(call.Reduce, 1, 1)}, 2},
		{"a kind that is never one with others", []*call.Call{of(call.AllToAll, -1, 1), of(call.AllToAll, -1, 1)}, 1},
		{"as much as fits", []*call.Call{of(call.AllReduce, -1, tuning.FuseMax/4-10), small()}, 2},
		{"more", []*call.Call{of(call.AllReduce, -1, tuning.FuseMax/4-9), small()}, 1},
		{"blocks of all ranks count", []*call.Call{of(call.AllGather, -1, tuning.FuseMax/8-10), of(call.AllGather, -1, 10), of(call.AllGather, -1, 1)}, 2},
		{"a large one alone", []*call.Call{of(call.AllReduce, -1, tuning.FuseMax), small()}, 1},
	} {
		assert.Equal(t, tc.want, fusible(tc.calls, c.Size()), tc.name)
	}
}

// A group gives each call its own result: small calls that are one, and messages that cross.
func TestGroup(t *testing.T) {
	for _, hosts := range [][]string{{"a", "a", "a"}, {"a", "a", "b"}} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			n := len(hosts)
			value := func(r, call, i int) int32 { return int32(r*10_000 + call*100 + i) }
			vector := func(r, call, count int) []int32 {
				v := make([]int32, count)
				for i := range v {
					v[i] = value(r, call, i)
				}
				return v
			}
			each(t, comms(t, hosts), func(c *Comm) error {
				r := c.Rank()
				next, last := (r+1)%n, (r+n-1)%n
				counts := []int{3, 1, 7}
				var calls []*call.Call
				var got [][]int32
				add := func(kind call.Kind, root, count, dst int, src []int32) {
					got = append(got, make([]int32, dst))
					calls = append(calls, callOf(kind, root, count, got[len(got)-1], src))
				}
				add(call.Recv, last, 5, 5, nil)
				for i, count := range counts {
					add(call.AllReduce, -1, count, count, vector(r, i, count))
				}
				add(call.Send, next, 5, 0, vector(r, 3, 5))
				for i, count := range counts {
					add(call.AllGather, -1, count, n*count, vector(r, i, count))
				}
				for i, count := range counts {
					size := 0
					if r == 1 {
						size = count
					}
					add(call.Reduce, 1, count, size, vector(r, i, count))
				}
				for i, count := range counts { // in place, as package ccl makes it
					add(call.Broadcast, 2, count, count, nil)
					k := calls[len(calls)-1]
					if copy(got[len(got)-1], vector(2, i, count)); r != 2 {
						clear(got[len(got)-1])
					}
					k.Src = k.Dst
				}
				if f := c.group(t.Context(), calls); f != nil {
					return f
				}
				sum := func(i, count int) []int32 {
					v := make([]int32, count)
					for q := range n {
						for j := range v {
							v[j] += value(q, i, j)
						}
					}
					return v
				}
				assert.Equal(t, vector(last, 3, 5), got[0], "rank %d: the message", r)
				for i, count := range counts {
					assert.Equal(t, sum(i, count), got[1+i], "rank %d: AllReduce %d", r, i)
					var blocks []int32
					for q := range n {
						blocks = append(blocks, vector(q, i, count)...)
					}
					assert.Equal(t, blocks, got[5+i], "rank %d: AllGather %d", r, i)
					if r == 1 {
						assert.Equal(t, sum(i, count), got[8+i], "rank %d: Reduce %d", r, i)
					}
					assert.Equal(t, vector(2, i, count), got[11+i], "rank %d: Broadcast %d", r, i)
				}
				if want := uint64(c.rank.Order.Start) + 4; c.rank.Order.Calls != want {
					return fmt.Errorf("the group was %d collectives, not %d", c.rank.Order.Calls-uint64(c.rank.Order.Start), want-uint64(c.rank.Order.Start))
				}
				return nil
			})
		})
	}
}

// Ranks that group the same calls in another way find it.
func TestGroupsThatDiffer(t *testing.T) {
	each(t, comms(t, []string{"a", "a"}), func(c *Comm) error {
		var calls []*call.Call
		for range 3 - c.Rank() {
			calls = append(calls, callOf(call.AllReduce, -1, 2*3/(3-c.Rank()), make([]int32, 3), make([]int32, 3)))
		}
		f := c.group(t.Context(), calls)
		if f == nil || f.Code != call.Mismatch || f.Peer != 1-c.Rank() {
			return fmt.Errorf("calls grouped in another way: %v", f)
		}
		return nil
	})
}

// A rank that has slept for a moment in a message of a group is none of the sleepers afterwards, whom each post would ring.
func TestGroupEndsItsSleep(t *testing.T) {
	all := comms(t, []string{"a", "a"})
	each(t, all, func(c *Comm) error {
		if c.Rank() == 0 {
			var w plane.Waiter
			c.rank.Park(t.Context(), &w, -1, 0) // as a wait does in the group, which ends before it is a long one
		}
		message := callOf([]call.Kind{call.Send, call.Recv}[c.Rank()], 1-c.Rank(), 5, make([]int32, 5*c.Rank()), make([]int32, 5*(1-c.Rank())))
		if f := c.group(t.Context(), []*call.Call{message}); f != nil {
			return f
		}
		return nil
	})
	for _, c := range all {
		assert.False(t, c.rank.Standing.Bell.Set, "rank %d", c.Rank())
		assert.Zero(t, c.rank.Share.Local.Sleepers().Load())
	}
}
