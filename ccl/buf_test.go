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
	b := ccl.BufOf([]float64{1, 2, 3, 4})
	for _, tc := range []struct {
		name string
		b    ccl.Buf
		len  int
		typ  ccl.Type
	}{
		{"none", ccl.Buf{}, 0, ccl.TypeNone},
		{"nil", ccl.BufOf([]int8(nil)), 0, ccl.TypeInt8},
		{"empty", ccl.BufOf([]uint16{}), 0, ccl.TypeUint16},
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

// Slice gives back the memory that Host was given, and nothing else.
func TestSlice(t *testing.T) {
	type myFloat float64
	x := []float64{1, 2, 3, 4}
	got, ok := ccl.SliceOf[float64](ccl.BufOf(x[:3]).From(1, 3))
	assert.True(t, ok)
	assert.Equal(t, []float64{2, 3}, got)
	assert.Equal(t, 2, cap(got), "what lies behind the view is not in it")
	got[0] = 7
	assert.Equal(t, 7.0, x[1])

	mine, ok := ccl.SliceOf[myFloat](ccl.BufOf(x))
	assert.True(t, ok, "they are of one Type")
	assert.Equal(t, myFloat(7), mine[1])
	ints, ok := ccl.SliceOf[int64](ccl.BufOf([]int{5}))
	assert.True(t, ok, "int has 64 bits")
	assert.Equal(t, []int64{5}, ints)
	none, ok := ccl.SliceOf[int8](ccl.BufOf([]int8(nil)))
	assert.True(t, ok)
	assert.Empty(t, none)

	for name, b := range map[string]ccl.Buf{
		"none": {}, "in place": ccl.InPlace(), "other type": ccl.BufOf([]uint64{1}), "bounds": ccl.BufOf(x).From(2, 9),
		"device": ccl.BufOfMemory(fakeMemory{n: 4}),
	} {
		s, ok := ccl.SliceOf[float64](b)
		assert.False(t, ok, name)
		assert.Nil(t, s, name)
	}
}

// Addr is the address of what From has cut out of device memory, and nothing else's.
func TestBufAddr(t *testing.T) {
	b := ccl.BufOfMemory(fakeMemory{n: 4})
	at, ok := b.From(1, 4).From(1, 2).Addr()
	assert.True(t, ok)
	assert.EqualValues(t, 4096+2*8, at)
	for name, b := range map[string]ccl.Buf{
		"none": {}, "in place": ccl.InPlace(), "host": ccl.BufOf([]float64{1}), "bounds": b.From(2, 9), "freed": ccl.BufOfMemory(freedMemory{}),
	} {
		_, ok := b.Addr()
		assert.False(t, ok, name)
	}
}

type freedMemory struct{ fakeMemory }

func (freedMemory) Ptr() (uintptr, bool) { return 4096, false }

// fakeMemory is device memory that no call may touch.
type fakeMemory struct {
	n int
	_ []string // which makes it a type that == panics on
}

func (fakeMemory) Ptr() (uintptr, bool) { return 4096, true }
func (fakeMemory) Device() int          { return 0 }
func (m fakeMemory) Len() int           { return m.n }
func (fakeMemory) Elem() float64        { return 0 }

// Join makes one Buf of two if, and only if, it is right for a call on both.
func TestBufJoin(t *testing.T) {
	flat := []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}
	b, dev := ccl.BufOf(flat), ccl.BufOfMemory[float64](&fakeMemory{n: 10})
	empty := ccl.BufOf([]float64{})
	for _, tc := range []struct {
		name    string
		a, next ccl.Buf
		want    []float64 // nil: no
	}{
		{"parts of a Buf", b.From(1, 3), b.From(3, 7), flat[1:7]},
		{"parts of a slice", ccl.BufOf(flat[:4]), ccl.BufOf(flat[4:6:6]), flat[:6]},
		{"part and slice", b.From(2, 4), ccl.BufOf(flat[4:5]), flat[2:5]},
		{"limited capacity", ccl.BufOf(flat[:4:4]), ccl.BufOf(flat[4:6]), nil},
		{"capacity for some", ccl.BufOf(flat[:4:5]), ccl.BufOf(flat[4:6]), nil},
		{"capacity for some, cut", ccl.BufOf(flat[:4:5]).From(1, 4), ccl.BufOf(flat[4:6]), nil},
		{"capacity for all, cut", ccl.BufOf(flat[:4:6]).From(3, 4), ccl.BufOf(flat[4:6]), flat[3:6]},
		{"a gap", b.From(0, 2), b.From(3, 4), nil},
		{"the other way around", b.From(3, 4), b.From(0, 3), nil},
		{"overlap", b.From(0, 3), b.From(2, 4), nil},
		{"the same", b, b, nil},
		{"empty next", b.From(1, 3), empty, flat[1:3]},
		{"empty next elsewhere", b.From(1, 3), b.From(9, 9), flat[1:3]},
		{"empty first", empty, b.From(1, 3), flat[1:3]},
		{"out of bounds", b.From(0, 11), b, nil},
		{"next out of bounds", b.From(0, 2), b.From(2, 11), nil},
		{"another type", b.From(0, 2), ccl.BufOf([]int64{}), nil},
		{"none", ccl.Buf{}, b, nil},
		{"next is none", b, ccl.Buf{}, nil},
		{"in place", ccl.InPlace(), ccl.InPlace(), nil},
		{"host and device", empty, dev, nil},
	} {
		j, ok := tc.a.Join(tc.next)
		assert.Equal(t, tc.want != nil, ok, tc.name)
		s, isHost := ccl.SliceOf[float64](j)
		assert.Equal(t, tc.want != nil, isHost, tc.name)
		assert.Equal(t, tc.want, s, tc.name)
	}
	j, _ := b.From(1, 3).Join(b.From(3, 5))
	j, ok := j.Join(b.From(5, 6))
	assert.True(t, ok, "what is joined joins")
	assert.Equal(t, 5, j.Len())

	j, ok = dev.From(2, 4).Join(dev.From(4, 10))
	assert.True(t, ok)
	assert.Equal(t, 8, j.Len())
	for name, next := range map[string]ccl.Buf{
		"gap": dev.From(5, 6), "other memory": ccl.BufOfMemory[float64](&fakeMemory{n: 10}).From(4, 5), "cannot be compared": ccl.BufOfMemory(fakeMemory{n: 10}).From(4, 5),
	} {
		_, ok := dev.From(2, 4).Join(next)
		assert.False(t, ok, name)
	}
	odd := ccl.BufOfMemory(fakeMemory{n: 10})
	_, ok = odd.From(0, 1).Join(odd.From(1, 2))
	assert.False(t, ok, "memory whose values cannot be compared may be any")
}

// A joined Buf is one operand.
func TestJoinedCall(t *testing.T) {
	together(t, 2, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		flat := []int{1, 2, 3, 4, 5}
		j, ok := ccl.BufOf(flat[1:2]).Join(ccl.BufOf(flat[2:4]))
		assert.True(t, ok)
		assert.NoError(t, c.On(nil).AllReduce(j, ccl.InPlace(), ccl.Sum).Wait(ctx))
		assert.Equal(t, []int{1, 4, 6, 8, 5}, flat)
	})
}

// Buffers that are wrong make a call that is refused, for a reason.
func TestBufRefused(t *testing.T) {
	x := []int{1, 2, 3, 4}
	b, f := ccl.BufOf(x), ccl.BufOf([]float32{1, 2, 3, 4})
	for _, tc := range []struct {
		name string
		call func(q ccl.Queue) ccl.Work
		want string
	}{
		{"out of bounds", func(q ccl.Queue) ccl.Work { return q.Broadcast(b.From(2, 9), 0) }, "Buf.From was out of bounds"},
		{"out of bounds again", func(q ccl.Queue) ccl.Work { return q.Broadcast(b.From(2, 9).From(0, 0), 0) }, "Buf.From was out of bounds"},
		{"two types", func(q ccl.Queue) ccl.Work { return q.AllReduce(b, f, ccl.Sum) }, "dst is int64 and src is float"},
		{"no type", func(q ccl.Queue) ccl.Work { return q.AllReduce(ccl.Buf{}, ccl.Buf{}, ccl.Sum) }, "there is no type 0"},
		{"dst in place", func(q ccl.Queue) ccl.Work { return q.AllReduce(ccl.InPlace(), b, ccl.Sum) }, "InPlace is valid only as src"},
		{"both in place", func(q ccl.Queue) ccl.Work { return q.AllReduce(ccl.InPlace(), ccl.InPlace(), ccl.Sum) }, "InPlace is valid only as src"},
		{"send in place", func(q ccl.Queue) ccl.Work { return q.Send(ccl.InPlace(), 0) }, "InPlace"},
		{"scatter in place", func(q ccl.Queue) ccl.Work { return q.Scatter(b, ccl.InPlace(), 0) }, "Scatter cannot take InPlace as src"},
		{"uneven in place", func(q ccl.Queue) ccl.Work { return q.AllGather(b.From(0, 3), ccl.InPlace()) }, "dst does not divide among the ranks"},
		{"counts in place", func(q ccl.Queue) ccl.Work { return q.AllGatherV(b, []int{1}, ccl.InPlace()) }, "counts has 1 entries for 2 ranks"},
		{"large counts in place", func(q ccl.Queue) ccl.Work { return q.ReduceScatterV(b, ccl.InPlace(), []int{9, 9}, ccl.Sum) }, "dst has 4 elements, but counts add up to 18"},
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
		q.AllReduce(ccl.BufOf(sum), in, ccl.Sum)
		q.Reduce(ccl.BufOf(reduced), in, ccl.Sum, 0)
		q.AllGather(ccl.BufOf(all), in)
		q.Gather(ccl.BufOf(gathered), in, 0)
		q.AllGatherV(ccl.BufOf(allV), counts, in)
		q.GatherV(ccl.BufOf(gatheredV), counts, in, 0)
		q.ReduceScatter(ccl.BufOf(rs), in, ccl.Sum)
		q.ReduceScatterV(ccl.BufOf(rsV), in, counts, ccl.Sum)
		if !assert.NoError(t, q.AllToAll(ccl.BufOf(swap), in).Wait(ctx)) {
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
			w = q.AllReduce(ccl.BufOf(make([]int, 1000)), ccl.BufOf(make([]int, 1000)), ccl.Sum)
			runtime.GC()
		}
		assert.NoError(t, w.Wait(ctx), fmt.Sprint(c))
	})
}
