//go:build oneccl && cgo && linux

package oneccl

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func endOfTwo(rank int) *comm {
	return &comm{lib: &library{version: "oneCCL 1"}, device: -1, gone: make(chan struct{}), plan: plan{rank: rank, size: 2, hasScatter: true, hasAllToAllV: true}}
}

// What oneCCL would crash on, or take for something else, is refused before it is called.
func TestPrepareRefuses(t *testing.T) {
	for _, tc := range []struct {
		name string
		call op.Call
		want string
	}{
		{"no root", op.Call{Head: op.Head{Record: op.Record{Kind: op.Broadcast, Type: op.Int8, Root: -1, Count: 1}}}, "onecclBroadcast: rank -1; the ranks are 0 to 1"},
		{"a root too far", op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Type: op.Int8, Root: 2, Count: 1}}}, "onecclReduce: rank 2; the ranks are 0 to 1"},
		{"a peer too far", op.Call{Head: op.Head{Record: op.Record{Kind: op.Send, Type: op.Int8, Root: 7, Count: 1}}}, "onecclSend: rank 7; the ranks are 0 to 1"},
		{"a type", op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int16, Root: -1, Count: 1}}}, "oneCCL moves int16, but does not reduce it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.EqualError(t, endOfTwo(0).prepare([]*op.Call{&tc.call}, true), tc.want)
		})
	}
	e := endOfTwo(0)
	_, err := e.Issue(0, nil, 0)
	require.EqualError(t, err, "calls on device memory need a queue (xpu.Queue)")
	require.NoError(t, e.prepare([]*op.Call{{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Int32, Root: -1, Count: 4}}}}, true))
	require.EqualError(t, e.make(t.Context()), "onecclAllReduce: a null address")
	e.plan.steps = e.plan.steps[:0]
	require.NoError(t, e.make(t.Context()), "no steps, no call")
}

// The memory of a call that is given up stays the heap's: its addresses are kept as pointers, but for those of a device.
func TestAddresses(t *testing.T) {
	x, y := new(int64), new(int64)
	e := endOfTwo(0)
	e.plan.steps = []step{{dst: uintptr(unsafe.Pointer(x)), src: uintptr(unsafe.Pointer(y))}}
	require.Equal(t, []unsafe.Pointer{unsafe.Pointer(x), unsafe.Pointer(y)}, e.addresses())
	e.queue = 1
	require.Nil(t, e.addresses())
}

// An average is divided where a rank has it, by the number of ranks.
func TestAverage(t *testing.T) {
	for _, tc := range []struct {
		name string
		rank int
		call op.Call
		want []float32
	}{
		{"all", 1, op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Count: 3}}}, []float32{1, 2, 3}},
		{"the root", 1, op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Root: 1, Count: 3}}}, []float32{1, 2, 3}},
		{"not the root", 0, op.Call{Head: op.Head{Record: op.Record{Kind: op.Reduce, Root: 1, Count: 3}}}, []float32{2, 4, 6}},
		{"a part", 1, op.Call{Head: op.Head{Record: op.Record{Kind: op.ReduceScatterV}}, DC: []int{1, 2}}, []float32{1, 2, 6}},
		{"no part", 0, op.Call{Head: op.Head{Record: op.Record{Kind: op.ReduceScatterV}}, DC: []int{0, 3}}, []float32{2, 4, 6}},
		{"what reduces nothing", 0, op.Call{Head: op.Head{Record: op.Record{Kind: op.AllGather, Count: 3}}}, []float32{2, 4, 6}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			x := []float32{2, 4, 6}
			tc.call.Type, tc.call.Op, tc.call.DstAt = op.Float32, op.Avg, uintptr(unsafe.Pointer(&x[0]))
			endOfTwo(tc.rank).average(&tc.call)
			require.Equal(t, tc.want, x)
		})
	}
	x := []float32{2}
	endOfTwo(0).average(&op.Call{Head: op.Head{Record: op.Record{Kind: op.AllReduce, Type: op.Float32, Op: op.Sum, Count: 1}, DstAt: uintptr(unsafe.Pointer(&x[0]))}})
	require.Equal(t, []float32{2}, x, "a sum is what it is")
}

// Host memory of a plan is used again while it is large enough.
func TestScratch(t *testing.T) {
	var s scratch
	first := s.onHost(100)
	require.Equal(t, first, s.onHost(50))
	require.Len(t, s.host, 100)
	s.onHost(101)
	require.Len(t, s.host, 101)
	require.NoError(t, s.free(0), "there is nothing on a device")
}
