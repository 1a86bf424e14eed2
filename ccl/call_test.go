package ccl

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// What is wrong with the lengths, the root, the peer or the counts of a call, on rank 1 of 3; the memory of dst begins at
// 1000, that of src at 2000, of elements of 4 bytes.
func TestCheckShape(t *testing.T) {
	for _, tc := range []struct {
		kind     Kind
		root     int
		dst, src int
		dc, sc   []int
		count    uint64
		want     string // "" if nothing is wrong
	}{
		{KindAllReduce, -1, 5, 5, nil, nil, 5, ""},
		{KindAllReduce, -1, 4, 5, nil, nil, 0, "dst has 4 elements, src 5: dst must have 5"},
		{KindReduce, 1, 5, 5, nil, nil, 5, ""},
		{KindReduce, 0, 0, 5, nil, nil, 5, ""}, // dst counts on the root alone
		{KindReduce, 3, 5, 5, nil, nil, 0, "root is 3; the ranks are 0 to 2"},
		{KindReduce, -1, 5, 5, nil, nil, 0, "root is -1; the ranks are 0 to 2"},
		{KindBroadcast, 2, 7, 7, nil, nil, 7, ""},
		{KindReduceScatter, -1, 2, 6, nil, nil, 2, ""},
		{KindReduceScatter, -1, 2, 7, nil, nil, 0, "src has 7 elements, dst 2: src must have 6, 2 for each of 3 ranks"},
		{KindAllGather, -1, 6, 2, nil, nil, 2, ""},
		{KindAllGather, -1, 5, 2, nil, nil, 0, "dst has 5 elements, src 2: dst must have 6"},
		{KindGather, 1, 6, 2, nil, nil, 2, ""},
		{KindGather, 0, 0, 2, nil, nil, 2, ""},
		{KindGather, 1, 5, 2, nil, nil, 0, "dst has 5 elements, src 2: dst must have 6"},
		{KindScatter, 1, 2, 6, nil, nil, 2, ""},
		{KindScatter, 1, 2, 5, nil, nil, 0, "src has 5 elements, dst 2: src must have 6, 2 for each of 3 ranks"},
		{KindScatter, 0, 2, 0, nil, nil, 2, ""},
		{KindAllToAll, -1, 6, 6, nil, nil, 2, ""},
		{KindAllToAll, -1, 7, 7, nil, nil, 0, "7 elements do not divide among 3 ranks"},
		{KindAllGatherV, -1, 6, 2, []int{1, 2, 3}, nil, 6, ""},
		{KindAllGatherV, -1, 6, 3, []int{1, 2, 3}, nil, 0, "src has 3 elements, but counts[1] is 2"},
		{KindAllGatherV, -1, 7, 2, []int{1, 2, 3}, nil, 0, "dst has 7 elements, but counts add up to 6"},
		{KindReduceScatterV, -1, 2, 6, []int{1, 2, 3}, nil, 6, ""},
		{KindScatterV, 0, 2, 0, []int{1, 2, 3}, nil, 6, ""},
		{KindGatherV, 1, 6, 2, []int{1, 2}, nil, 0, "counts has 2 entries for 3 ranks"},
		{KindGatherV, 1, 6, 2, []int{1, 2, -3}, nil, 0, "counts[2] is -3"},
		{KindGatherV, 1, 6, 2, []int{math.MaxInt, 2, 1}, nil, 0, "counts add up to more than an int holds"},
		{KindAllToAllV, -1, 6, 7, []int{1, 2, 3}, []int{2, 2, 3}, 0, ""},
		{KindAllToAllV, -1, 6, 7, []int{1, 3, 2}, []int{2, 2, 3}, 0, "dc[1] is 3 and sc[1] is 2, but they must be equal: both are what this rank keeps"},
		{KindAllToAllV, -1, 5, 7, []int{1, 2, 3}, []int{2, 2, 3}, 0, "dst has 5 elements, but dc adds up to 6"},
		{KindAllToAllV, -1, 6, 8, []int{1, 2, 3}, []int{2, 2, 3}, 0, "src has 8 elements, but sc adds up to 7"},
		{KindSend, 2, 0, 4, nil, nil, 4, ""},
		{KindSend, -1, 0, 4, nil, nil, 0, "peer is -1; the ranks are 0 to 2"},
		{KindRecv, 3, 4, 0, nil, nil, 0, "peer is 3; the ranks are 0 to 2"},
		{KindBarrier, -1, 0, 0, nil, nil, 0, ""},
	} {
		a := &args{kind: tc.kind, typ: TypeInt32, root: tc.root, dc: tc.dc, sc: tc.sc,
			onDst: extent{1000, 4 * tc.dst, tc.dst}, onSrc: extent{2000, 4 * tc.src, tc.src}}
		count, err := a.checkShape(3, 1)
		if tc.want != "" {
			assert.EqualError(t, err, tc.want, "%v", tc)
			continue
		}
		assert.NoError(t, err, "%v", tc)
		assert.Equal(t, tc.count, count, "%v", tc)
	}
	a := &args{kind: KindSendRecv, typ: TypeInt32, root: 0, to: 3}
	_, err := a.checkShape(3, 1)
	assert.EqualError(t, err, "peer is 3; the ranks are 0 to 2")
}

// In place is where a part lies in its whole, and nowhere else.
func TestOverlap(t *testing.T) {
	at := func(first, bytes int) extent { return extent{uintptr(first), bytes, bytes} }
	assert.True(t, overlaps(at(10, 4), at(13, 1)))
	assert.False(t, overlaps(at(10, 4), at(14, 1)))
	assert.False(t, overlaps(at(10, 4), at(12, 0)), "nothing overlaps nothing")
	assert.NoError(t, overlap(at(10, 4), at(10, 4)))
	assert.Equal(t, errOverlap, overlap(at(10, 4), at(11, 4)))
	assert.NoError(t, within(at(10, 12), at(14, 4), 4))
	assert.Equal(t, errOverlap, within(at(10, 12), at(15, 4), 4))
	assert.NoError(t, within(at(10, 12), at(30, 4), 4))
}

// A call is like the one before where all is the same that was checked.
func TestAgain(t *testing.T) {
	buf := make([]byte, 64)
	of := func(f func(*args)) *args {
		a := &args{kind: KindAllReduce, typ: TypeInt32, op: Max, root: -1, dst: buf[:32], src: buf[32:]}
		f(a)
		return a
	}
	last := of(func(*args) {}).shape()
	assert.True(t, of(func(*args) {}).again(&last))
	for name, f := range map[string]func(*args){
		"kind": func(a *args) { a.kind = KindReduce }, "type": func(a *args) { a.typ = TypeUint32 }, "operator": func(a *args) { a.op = Sum },
		"root": func(a *args) { a.root = 0 }, "to": func(a *args) { a.to = 1 }, "dst": func(a *args) { a.dst = buf[1:33] },
		"length of dst": func(a *args) { a.dst = buf[:31] }, "src": func(a *args) { a.src = buf[31:63] }, "length of src": func(a *args) { a.src = buf[32:63] },
	} {
		assert.False(t, of(f).again(&last), name)
	}
	var k counts
	assert.True(t, k.are(&args{}))
	k.set(&args{dc: []int{1, 2}, sc: []int{3}})
	assert.True(t, k.are(&args{dc: []int{1, 2}, sc: []int{3}}))
	assert.False(t, k.are(&args{dc: []int{1, 2}, sc: []int{4}}))
	assert.False(t, k.are(&args{}))
}

// What a record keeps for the next call like it is what filling it anew gives.
func TestFill(t *testing.T) {
	a := &args{kind: KindReduce, typ: TypeFloat32, op: Avg, root: 2, dst: make([]byte, 8), src: make([]byte, 8)}
	var k, anew call.Call
	a.fill(&k, 1, 2, nil)
	assert.Equal(t, call.Record{Seq: 1, Count: 2, Kind: call.Reduce, Type: uint8(TypeFloat32), Op: uint8(Avg), Root: 2, Hash: k.Own}, k.Record)
	assert.Equal(t, 4, k.Elem)
	assert.NotNil(t, k.Fold)
	assert.NotNil(t, k.Scale, "Avg divides the sum")
	a.fill(&k, 2, 2, nil)
	a.fill(&anew, 2, 2, nil)
	assert.Equal(t, anew.Record, k.Record)
	a.fill(&k, 2, 3, nil)
	assert.NotEqual(t, anew.Own, k.Own, "another count, another hash")
	var f factors
	op := f.op(0.5)
	assert.Equal(t, firstScaled, op)
	assert.Equal(t, op, f.op(0.5), "the same factor, the same operator")
	assert.Equal(t, firstScaled+1, f.op(2))
	(&args{kind: KindAllReduce, typ: TypeFloat32, op: op, root: -1}).fill(&k, 3, 2, &f)
	assert.Equal(t, 0.5, k.Factor)
	assert.Equal(t, float32(0.5), k.Times)
}

// The CPU engine says why it cannot make a call; what is about the backend is ErrUnsupported.
func TestSupports(t *testing.T) {
	for _, tc := range []struct {
		k    Kind
		t    Type
		op   Op
		code Code
		want string
	}{
		{KindAllReduce, TypeFloat32, Avg, 0, ""},
		{KindBarrier, TypeNone, Sum, 0, ""},
		{KindBroadcast, TypeFloat8E4M3, Sum, 0, ""},
		{0, TypeInt8, Sum, ErrArgument, "there is no kind 0"},
		{kindEnd, TypeInt8, Sum, ErrArgument, fmt.Sprintf("there is no kind %d", kindEnd)},
		{KindSend, TypeNone, Sum, ErrArgument, "there is no type 0"},
		{KindReduce, TypeInt8, opEnd, ErrArgument, fmt.Sprintf("there is no operator %d", opEnd)},
		{KindReduce, TypeFloat8E5M2, Sum, ErrUnsupported, "the cpu engine moves f8e5m2, but does not reduce it"},
	} {
		err := supports(tc.k, tc.t, tc.op)
		if tc.want == "" {
			assert.NoError(t, err, "%v", tc)
			continue
		}
		assert.EqualError(t, err, tc.want)
		assert.Equal(t, tc.code, codeOf(err))
	}
	assert.Equal(t, ErrArgument, codeOf(errors.New("x")))
}
