package ccl_test

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

func TestBuf(t *testing.T) {
	b := ccl.Host([]float64{1, 2, 3, 4})
	for _, tc := range []struct {
		name string
		b    ccl.Buf
		len  int
		typ  ccl.Type
	}{
		{"none", ccl.Buf{}, 0, ccl.TypeNone},
		{"nil", ccl.Host([]int8(nil)), 0, ccl.TypeInt8},
		{"empty", ccl.Host([]uint16{}), 0, ccl.TypeUint16},
		{"whole", b, 4, ccl.TypeFloat64},
		{"part", b.From(1, 3), 2, ccl.TypeFloat64},
		{"part of a part", b.From(1, 4).From(1, 2), 1, ccl.TypeFloat64},
		{"empty part at the end", b.From(4, 4), 0, ccl.TypeFloat64},
		{"beyond", b.From(3, 5), 0, ccl.TypeFloat64},
		{"negative", b.From(-1, 2), 0, ccl.TypeFloat64},
		{"backwards", b.From(3, 2), 0, ccl.TypeFloat64},
		{"far", b.From(math.MaxInt, math.MaxInt), 0, ccl.TypeFloat64},
		{"part of what is out of bounds", b.From(3, 5).From(0, 0), 0, ccl.TypeFloat64},
	} {
		assert.Equal(t, tc.len, tc.b.Len(), tc.name)
		assert.Equal(t, tc.typ, tc.b.Type(), tc.name)
	}
}

// Buffers that are wrong make a call that is refused, for a reason.
func TestBufRefused(t *testing.T) {
	x := []int{1, 2, 3, 4}
	b, f := ccl.Host(x), ccl.Host([]float32{1, 2, 3, 4})
	for _, tc := range []struct {
		name string
		call func(q ccl.Queue) ccl.Work
		want string
	}{
		{"out of bounds", func(q ccl.Queue) ccl.Work { return q.Broadcast(b.From(2, 9), 0) }, "Buf.From was out of bounds"},
		{"out of bounds again", func(q ccl.Queue) ccl.Work { return q.Broadcast(b.From(2, 9).From(0, 0), 0) }, "Buf.From was out of bounds"},
		{"two types", func(q ccl.Queue) ccl.Work { return q.AllReduce(b, f, ccl.Sum) }, "dst is int64 and src is float"},
		{"no type", func(q ccl.Queue) ccl.Work { return q.AllReduce(ccl.Buf{}, ccl.Buf{}, ccl.Sum) }, "there is no type 0"},
		{"dst in place", func(q ccl.Queue) ccl.Work { return q.AllReduce(ccl.InPlace(), b, ccl.Sum) }, "InPlace is for src"},
		{"both in place", func(q ccl.Queue) ccl.Work { return q.AllReduce(ccl.InPlace(), ccl.InPlace(), ccl.Sum) }, "InPlace is for src"},
		{"send in place", func(q ccl.Queue) ccl.Work { return q.Send(ccl.InPlace(), 0) }, "InPlace"},
		{"scatter in place", func(q ccl.Queue) ccl.Work { return q.Scatter(b, ccl.InPlace(), 0) }, "Scatter cannot take InPlace as src"},
		{"uneven in place", func(q ccl.Queue) ccl.Work { return q.AllGather(b.From(0, 3), ccl.InPlace()) }, "dst does not divide among the ranks"},
		{"counts in place", func(q ccl.Queue) ccl.Work { return q.AllGatherV(b, []int{1}, ccl.InPlace()) }, "counts has 1 entries for 2 ranks"},
		{"large counts in place", func(q ccl.Queue) ccl.Work { return q.ReduceScatterV(b, ccl.InPlace(), []int{9, 9}, ccl.Sum) }, "dst"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				e := wants(t, tc.call(c.On(nil)).Wait(ctx), ccl.ErrArgument)
				assert.Contains(t, e.Error(), tc.want)
			})
		})
	}
}

// InPlace is what the in-place form of the blocking call is.
func TestInPlace(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		r, in := c.Rank(), ccl.InPlace()
		q := c.On(nil)
		at := func(n, i, v int) []int { x := make([]int, n); x[i] = v; return x }
		all, gathered, allV, gatheredV := at(2, r, r+1), at(2, r, r+1), at(3, 2*r, r+1), at(3, 2*r, r+1)
		sum, reduced, rs, rsV, swap := []int{1, r}, []int{1, r}, []int{1, 2, 3, 4}, []int{1, 2, 3}, []int{10 * r, 10*r + 1}
		counts := []int{2, 1}
		q.AllReduce(ccl.Host(sum), in, ccl.Sum)
		q.Reduce(ccl.Host(reduced), in, ccl.Sum, 0)
		q.AllGather(ccl.Host(all), in)
		q.Gather(ccl.Host(gathered), in, 0)
		q.AllGatherV(ccl.Host(allV), counts, in)
		q.GatherV(ccl.Host(gatheredV), counts, in, 0)
		q.ReduceScatter(ccl.Host(rs), in, ccl.Sum)
		q.ReduceScatterV(ccl.Host(rsV), in, counts, ccl.Sum)
		if !assert.NoError(t, q.AllToAll(ccl.Host(swap), in).Wait(ctx)) {
			return
		}
		assert.Equal(t, []int{2, 1}, sum)
		assert.Equal(t, []int{1, 2}, all)
		assert.Equal(t, []int{1, 0, 2}, allV)
		assert.Equal(t, []int{r, 10 + r}, swap)
		assert.Equal(t, [][]int{{2, 4}, {6, 8}}[r], rs[2*r:2*r+2])
		assert.Equal(t, [][]int{{2, 4}, {6}}[r], rsV[2*r:min(2*r+2, 3)])
		if r == 0 {
			assert.Equal(t, []int{2, 1}, reduced)
			assert.Equal(t, []int{1, 2}, gathered)
			assert.Equal(t, []int{1, 0, 2}, gatheredV)
		}
	})
}

// A queued call keeps its memory alive, though nobody else does.
func TestBufKeepsAlive(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		q := c.On(nil)
		var w ccl.Work
		for range 50 {
			w = q.AllReduce(ccl.Host(make([]int, 1000)), ccl.Host(make([]int, 1000)), ccl.Sum)
			runtime.GC()
		}
		assert.NoError(t, w.Wait(ctx), fmt.Sprint(c))
	})
}
