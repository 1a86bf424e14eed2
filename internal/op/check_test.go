package op

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is wrong with the lengths, the root, the peer or the counts of a call, on rank 1 of 3; the
// memory of dst begins at 1000, that of src at 2000, of elements of 4 bytes.
func TestCheck(t *testing.T) {
	for _, tc := range []struct {
		kind     Kind
		root     int32
		dst, src int
		dc, sc   []int
		count    uint64
		want     string // "" if nothing is wrong
	}{
		{AllReduce, -1, 5, 5, nil, nil, 5, ""},
		{AllReduce, -1, 4, 5, nil, nil, 0, "dst has 4 elements, src 5: dst must have 5"},
		{Reduce, 1, 5, 5, nil, nil, 5, ""},
		{Reduce, 0, 0, 5, nil, nil, 5, ""}, // dst counts on the root alone
		{Reduce, 3, 5, 5, nil, nil, 0, "root is 3; the ranks are 0 to 2"},
		{Reduce, -1, 5, 5, nil, nil, 0, "root is -1; the ranks are 0 to 2"},
		{Broadcast, 2, 7, 7, nil, nil, 7, ""},
		{ReduceScatter, -1, 2, 6, nil, nil, 2, ""},
		{ReduceScatter, -1, 2, 7, nil, nil, 0, "src has 7 elements, dst 2: src must have 6, 2 for each of 3 ranks"},
		{AllGather, -1, 6, 2, nil, nil, 2, ""},
		{AllGather, -1, 5, 2, nil, nil, 0, "dst has 5 elements, src 2: dst must have 6"},
		{Gather, 1, 6, 2, nil, nil, 2, ""},
		{Gather, 0, 0, 2, nil, nil, 2, ""},
		{Gather, 1, 5, 2, nil, nil, 0, "dst has 5 elements, src 2: dst must have 6"},
		{Scatter, 1, 2, 6, nil, nil, 2, ""},
		{Scatter, 1, 2, 5, nil, nil, 0, "src has 5 elements, dst 2: src must have 6, 2 for each of 3 ranks"},
		{Scatter, 0, 2, 0, nil, nil, 2, ""},
		{AllToAll, -1, 6, 6, nil, nil, 2, ""},
		{AllToAll, -1, 7, 7, nil, nil, 0, "7 elements do not divide among 3 ranks"},
		{AllGatherV, -1, 6, 2, []int{1, 2, 3}, nil, 6, ""},
		{AllGatherV, -1, 6, 3, []int{1, 2, 3}, nil, 0, "src has 3 elements, but counts[1] is 2"},
		{AllGatherV, -1, 7, 2, []int{1, 2, 3}, nil, 0, "dst has 7 elements, but counts add up to 6"},
		{ReduceScatterV, -1, 2, 6, []int{1, 2, 3}, nil, 6, ""},
		{ScatterV, 0, 2, 0, []int{1, 2, 3}, nil, 6, ""},
		{GatherV, 1, 6, 2, []int{1, 2}, nil, 0, "counts has 2 entries for 3 ranks"},
		{GatherV, 1, 6, 2, []int{1, 2, -3}, nil, 0, "counts[2] is -3"},
		{GatherV, 1, 6, 2, []int{math.MaxInt, 2, 1}, nil, 0, "counts add up to more than an int holds"},
		{AllToAllV, -1, 6, 7, []int{1, 2, 3}, []int{2, 2, 3}, 0, ""},
		{AllToAllV, -1, 6, 7, []int{1, 3, 2}, []int{2, 2, 3}, 0, "dc[1] is 3 and sc[1] is 2, but they must be equal: both are what this rank keeps"},
		{AllToAllV, -1, 5, 7, []int{1, 2, 3}, []int{2, 2, 3}, 0, "dst has 5 elements, but dc adds up to 6"},
		{AllToAllV, -1, 6, 8, []int{1, 2, 3}, []int{2, 2, 3}, 0, "src has 8 elements, but sc adds up to 7"},
		{Send, 2, 0, 4, nil, nil, 4, ""},
		{Send, -1, 0, 4, nil, nil, 0, "peer is -1; the ranks are 0 to 2"},
		{Recv, 3, 4, 0, nil, nil, 0, "peer is 3; the ranks are 0 to 2"},
		{Barrier, -1, 0, 0, nil, nil, 0, ""},
	} {
		c := &Call{Head: Head{Record: Record{Kind: tc.kind, Type: Int32, Root: tc.root}, DstAt: 1000, DstN: tc.dst, SrcAt: 2000, SrcN: tc.src}, Elem: 4, DC: tc.dc, SC: tc.sc}
		err := Check(c, 3, 1)
		if tc.want != "" {
			assert.EqualError(t, err, tc.want, "%v", tc)
			continue
		}
		assert.NoError(t, err, "%v", tc)
		assert.Equal(t, tc.count, c.Count, "%v", tc)
	}
	assert.Equal(t, 15, Elements([]int{4, 0, 11}))
	c := &Call{Head: Head{Record: Record{Kind: SendRecv, Type: Int32}, To: 3}}
	assert.EqualError(t, Check(c, 3, 1), "peer is 3; the ranks are 0 to 2")
}

// In place is where a part lies in its whole, and nowhere else: on rank 1 of 3, of 4 bytes an
// element.
func TestOverlap(t *testing.T) {
	counts := []int{2, 2, 2}
	for _, tc := range []struct {
		name         string
		kind         Kind
		dstAt, srcAt uintptr
		dst, src     int
		want         error
	}{
		{"one memory", AllReduce, 1000, 1000, 4, 4, nil},
		{"one memory, of another length", AllToAll, 1000, 1000, 3, 3, nil},
		{"side by side", AllReduce, 1000, 1016, 4, 4, nil},
		{"by a byte", AllReduce, 1000, 1015, 4, 4, ErrOverlap},
		{"from below", AllToAll, 1004, 1000, 3, 3, ErrOverlap},
		{"nothing overlaps nothing", AllReduce, 1000, 1000, 0, 0, nil},
		{"a message", SendRecv, 1000, 1004, 2, 2, ErrOverlap},
		{"a part at its place", AllGather, 1000, 1008, 6, 2, nil},
		{"a part elsewhere", AllGather, 1000, 1004, 6, 2, ErrOverlap},
		{"a part outside", AllGather, 1000, 1024, 6, 2, nil},
		{"a result at its place", ReduceScatter, 1008, 1000, 2, 6, nil},
		{"a result elsewhere", ReduceScatter, 1000, 1000, 2, 6, ErrOverlap},
		{"counts at their place", AllGatherV, 1000, 1008, 6, 2, nil},
		{"counts elsewhere", ReduceScatterV, 1012, 1000, 2, 6, ErrOverlap},
		{"the root's part", Gather, 1000, 1000, 6, 2, ErrOverlap},
		{"no root's part", Scatter, 1000, 1000, 2, 6, nil},
	} {
		c := &Call{Head: Head{Record: Record{Kind: tc.kind, Type: Int32, Root: 1}, DstAt: tc.dstAt, DstN: tc.dst, SrcAt: tc.srcAt, SrcN: tc.src}, Elem: 4}
		if tc.kind.Counted() {
			c.DC = counts
		}
		if tc.name == "no root's part" {
			c.Root = 0
		}
		if err := Check(c, 3, 1); tc.want == nil {
			assert.NoError(t, err, tc.name)
		} else {
			assert.ErrorIs(t, err, tc.want, tc.name)
		}
	}
	below := &Call{Head: Head{Record: Record{Kind: AllToAll, Type: Int32}, DstAt: 1004, DstN: 3, SrcAt: 1000, SrcN: 3}, Elem: 4}
	assert.EqualError(t, Check(below, 3, 1), "dst and src overlap partially: src (3 elements) begins 4 bytes before dst (3 elements of 4 bytes)")
}

// What has no meaning off the root is taken from the call: what the caller gave is not looked at, nor where it lies.
func TestCheckDrops(t *testing.T) {
	mem := make([]byte, 12)
	for _, tc := range []struct {
		kind     Kind
		dst, src int // what is left
	}{
		{Reduce, 0, 2}, {Gather, 0, 2}, {GatherV, 0, 2}, {Scatter, 2, 0}, {ScatterV, 2, 0}, {Broadcast, 2, 2},
	} {
		c := &Call{Head: Head{Record: Record{Kind: tc.kind, Type: Int32}, DstN: 2, SrcN: 2}, Elem: 4, Dst: mem[:8], Src: mem[4:12], DC: []int{1, 2, 3}}
		c.Address()
		assert.NoError(t, Check(c, 3, 1), "%v", tc.kind)
		assert.Equal(t, []any{tc.dst, tc.dst > 0, tc.dst > 0}, []any{c.DstN, c.DstAt != 0, c.Dst != nil}, "%v", tc.kind)
		assert.Equal(t, []any{tc.src, tc.src > 0, tc.src > 0}, []any{c.SrcN, c.SrcAt != 0, c.Src != nil}, "%v", tc.kind)
		assert.Equal(t, map[bool]uint64{false: 2, true: 6}[tc.kind.Counted()], c.Count, "%v", tc.kind)
	}
}
