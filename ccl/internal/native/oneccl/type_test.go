package oneccl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestSupports(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kind   op.Kind
		typ    op.Type
		op     op.Op
		host   bool
		device int
		want   string // "" if it does
	}{
		{"host", op.AllReduce, op.Float32, op.Sum, true, -1, ""},
		{"host avg", op.ReduceScatterV, op.BFloat16, op.Avg, true, -1, ""},
		{"host avg beside a device", op.Reduce, op.Int8, op.Avg, true, 0, ""},
		{"device", op.AllReduce, op.Float16, op.Max, false, 2, ""},
		{"device avg", op.AllReduce, op.Float16, op.Avg, false, 2, "oneCCL has no avg: on device memory use sum, and divide in a kernel of your own"},
		{"no device", op.Barrier, op.None, 0, false, -1, "oneCCL runs on its CPU plugin, because there is no SYCL device here: it takes only host memory"},
		{"int16", op.Reduce, op.Int16, op.Sum, true, -1, "oneCCL moves int16, but does not reduce it"},
		{"fp8", op.AllReduce, op.Float8E5M2, op.Min, true, -1, "oneCCL moves f8e5m2, but does not reduce it"},
		{"fp8 is moved", op.AllToAllV, op.Float8E5M2, 0, true, -1, ""},
		{"an operator to come", op.AllReduce, op.Int8, 9, true, -1, "oneCCL does not reduce int8 by none"},
		{"bits", op.AllReduce, op.Int32, op.BXor, true, -1, "oneCCL does not reduce int32 by bxor"},
		{"bool", op.AllReduce, op.Bool, op.Max, true, -1, "oneCCL moves bool, but does not reduce it"},
		{"complex64 is moved", op.Broadcast, op.Complex64, 0, true, -1, ""},
		{"complex128", op.Broadcast, op.Complex128, 0, true, -1, "oneCCL has no elements of 16 bytes, which complex128 has"},
		{"no kind", op.Group, op.Int8, 0, true, -1, "oneCCL has no calls of kind 19"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := supports(tc.kind, tc.typ, tc.op, tc.host, tc.device)
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.EqualError(t, err, tc.want)
		})
	}
}

// All types are moved, as one of their size.
func TestCarrier(t *testing.T) {
	size := map[int32]uintptr{0: 1, 1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2}
	for typ := op.Int8; typ <= op.Float8E5M2; typ++ {
		require.Equal(t, sizeOf(typ), size[carrier(typ)], "%d", typ)
	}
	require.EqualValues(t, 1, sizeOf(op.None))
}
