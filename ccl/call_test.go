package ccl

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// What follows from kind, type and operator.
func TestKernels(t *testing.T) {
	var k call.Call
	(&args{kind: call.Reduce, typ: TypeFloat32, op: Avg, root: 2}).kernels(&k, nil)
	assert.Equal(t, call.Record{Kind: call.Reduce, Type: op.Float32, Op: op.Avg, Root: 2, State: uint8(Running)}, k.Record)
	assert.Equal(t, 4, k.Elem)
	assert.NotNil(t, k.Fold)
	assert.NotNil(t, k.Scale, "Avg divides the sum")
	(&args{kind: call.AllReduce, typ: TypeFloat16, op: Avg}).kernels(&k, nil)
	assert.True(t, k.Weighs)
	assert.Nil(t, k.Scale, "the sum of 16-bit floats is divided before it is rounded")
	for op, weighs := range map[Op]bool{Sum: false, Avg: true, Prod: false, Max: false} {
		(&args{kind: call.AllReduce, typ: TypeFloat8E4M3, op: op}).kernels(&k, nil)
		assert.Equal(t, weighs, k.Weighs)
		assert.Equal(t, op == Sum || op == Avg, k.Wide != nil, "sums of 8-bit floats are rounded once, between hosts, too: %v", op)
	}
	(&args{kind: call.AllGather, typ: TypeFloat16}).kernels(&k, nil)
	assert.Equal(t, call.Call{Head: op.Head{Record: call.Record{Kind: call.AllGather, Type: op.Float16, State: uint8(Running)}}, Elem: 2}, k)
	var f factors
	half := f.op(0.5)
	assert.Equal(t, firstScaled, half)
	assert.Equal(t, half, f.op(0.5), "the same factor, the same operator")
	assert.Equal(t, firstScaled+1, f.op(2))
	(&args{kind: call.AllReduce, typ: TypeFloat32, op: half, root: -1}).kernels(&k, f)
	assert.Equal(t, 0.5, k.Factor)
	assert.Equal(t, float32(0.5), k.Times)
}

// A call that keeps what the one before it had is what describing it anew gives, whatever came before, errors too.
func TestDescribe(t *testing.T) {
	c, err := NewComm(t.Context(), &seat{}, &Options{Name: "alone"})
	require.NoError(t, err)
	defer c.Close()
	half, mem, rnd := c.Scaled(0.5), make([]float64, 64), rand.New(rand.NewPCG(1, 2))
	var k call.Call
	a, kept, failed := new(args), 0, 0
	for i := range 3000 {
		last := *a
		a = &args{kind: 1 + call.Kind(rnd.IntN(int(call.Barrier))), typ: TypeFloat16 + Type(rnd.IntN(2)), op: []Op{Sum, Avg, half}[rnd.IntN(3)], root: rnd.IntN(8) / 7, to: rnd.IntN(8) / 7}
		if !a.kind.Rooted() && !a.kind.Pairwise() {
			a.root = noRoot - rnd.IntN(2)
		}
		if i%3 == 1 {
			*a = last
		}
		a.dst, a.src = areaOf(mem[:1+rnd.IntN(2)]), areaOf(mem[32:33])
		if a.kind.Counted() || a.kind == call.AllToAllV {
			a.dc, a.sc = []int{a.dst.n}, []int{a.src.n}
		}
		var anew call.Call
		_, want := describe(c, &anew, a, true)
		changed, err := describe(c, &k, a, true)
		require.Equal(t, want, err)
		if err != nil {
			failed++
			require.Zero(t, k.Kind)
			continue
		}
		if !changed {
			kept++
		}
		require.Equal(t, []any{anew.Head, anew.Own, anew.Elem, anew.Weighs, anew.Fold == nil, anew.Scale == nil, anew.All == nil, anew.Both == nil, len(anew.Dst), len(anew.Src), anew.DC, anew.SC},
			[]any{k.Head, k.Own, k.Elem, k.Weighs, k.Fold == nil, k.Scale == nil, k.All == nil, k.Both == nil, len(k.Dst), len(k.Src), k.DC, k.SC})
	}
	require.Greater(t, kept, 100)
	require.Greater(t, failed, 100)

	a = &args{kind: call.AllReduce, typ: TypeFloat64, root: noRoot, dst: areaOf(mem), src: areaOf(mem)}
	_, err = describe(c, &k, a, true)
	require.NoError(t, err)
	a.dst = areaOf(mem[:32])
	a.src = a.dst
	changed, err := describe(c, &k, a, true)
	require.NoError(t, err)
	assert.True(t, changed, "another count")
	a.dst, a.src = areaOf(mem[32:]), areaOf(mem[:32])
	changed, err = describe(c, &k, a, true)
	require.NoError(t, err)
	assert.False(t, changed, "other memory")
	assert.Same(t, unsafe.SliceData(k.Dst), (*byte)(unsafe.Pointer(&mem[32])))
	assert.Zero(t, testing.AllocsPerRun(10, func() { _, _ = describe(c, &k, a, true) }))
}

// The CPU engine says why it cannot make a call; what is about the backend is ErrUnsupported.
func TestSupports(t *testing.T) {
	c, err := NewComm(t.Context(), &seat{}, nil)
	require.NoError(t, err)
	defer c.Close()
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
		{KindReduce, TypeFloat8E5M2, Avg, 0, ""},
		{KindReduce, TypeFloat8E5M2, BOr, ErrUnsupported, "the cpu engine does not reduce f8e5m2 by bor"},
	} {
		err := supports(c, op.Kind(tc.k), op.Type(tc.t), op.Op(tc.op), true)
		if tc.want == "" {
			assert.NoError(t, err, "%v", tc)
			continue
		}
		assert.EqualError(t, err, tc.want)
		assert.Equal(t, tc.code, codeOf(err, ErrArgument))
	}
	assert.Equal(t, ErrArgument, codeOf(errors.New("x"), ErrArgument))
}
