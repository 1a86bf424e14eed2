package ccl

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// What follows from kind, type and operator.
func TestKernels(t *testing.T) {
	var k call.Call
	(&args{kind: call.Reduce, typ: TypeFloat32, op: Avg, root: 2}).kernels(&k, nil)
	assert.Equal(t, call.Record{Kind: call.Reduce, Type: op.Float32, Op: op.Avg, Root: 2}, k.Record)
	assert.Equal(t, 4, k.Elem)
	assert.NotNil(t, k.Fold)
	assert.NotNil(t, k.Scale, "Avg divides the sum")
	(&args{kind: call.AllReduce, typ: TypeFloat16, op: Avg}).kernels(&k, nil)
	assert.True(t, k.Weighs)
	assert.Nil(t, k.Scale, "the sum of 16-bit floats is divided before it is rounded")
	(&args{kind: call.AllGather, typ: TypeFloat16}).kernels(&k, nil)
	assert.Equal(t, call.Call{Head: op.Head{Record: call.Record{Kind: call.AllGather, Type: op.Float16}}, Elem: 2}, k)
	var f factors
	half := f.op(0.5)
	assert.Equal(t, firstScaled, half)
	assert.Equal(t, half, f.op(0.5), "the same factor, the same operator")
	assert.Equal(t, firstScaled+1, f.op(2))
	(&args{kind: call.AllReduce, typ: TypeFloat32, op: half, root: -1}).kernels(&k, f)
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
		err := supported(op.Kind(tc.k), op.Type(tc.t), op.Op(tc.op))
		if tc.want == "" {
			assert.NoError(t, err, "%v", tc)
			continue
		}
		assert.EqualError(t, err, tc.want)
		assert.Equal(t, tc.code, codeOf(err))
	}
	assert.Equal(t, ErrArgument, codeOf(errors.New("x")))
}
