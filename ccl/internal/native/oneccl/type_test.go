package oneccl

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

func TestSupports(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kind   engine.Kind
		typ    engine.Type
		op     engine.Op
		host   bool
		device int
		want   string // "" if it does
	}{
		{"host", engine.AllReduce, engine.Float32, engine.Sum, true, -1, ""},
		{"host avg", engine.ReduceScatterV, engine.BFloat16, engine.Avg, true, -1, ""},
		{"host avg beside a device", engine.Reduce, engine.Int8, engine.Avg, true, 0, ""},
		{"device", engine.AllReduce, engine.Float16, engine.Max, false, 2, ""},
		{"device avg", engine.AllReduce, engine.Float16, engine.Avg, false, 2, "oneCCL has no avg: on device memory use sum, and divide in a kernel of your own"},
		{"no device", engine.Barrier, engine.None, 0, false, -1, "oneCCL runs on its CPU plugin, because there is no SYCL device here: it takes only host memory"},
		{"int16", engine.Reduce, engine.Int16, engine.Sum, true, -1, "oneCCL moves int16, but does not reduce it"},
		{"fp8", engine.AllReduce, engine.Float8E5M2, engine.Min, true, -1, "oneCCL moves f8e5m2, but does not reduce it"},
		{"fp8 is moved", engine.AllToAllV, engine.Float8E5M2, 0, true, -1, ""},
		{"an operator to come", engine.AllReduce, engine.Int8, 9, true, -1, "oneCCL moves int8, but does not reduce it"},
		{"no kind", engine.GroupOfCalls, engine.Int8, 0, true, -1, "oneCCL has no calls of kind 19"},
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
	for typ := engine.Int8; typ <= engine.Float8E5M2; typ++ {
		require.Equal(t, sizeOf(typ), size[carrier(typ)], "%d", typ)
	}
	require.EqualValues(t, 1, sizeOf(engine.None))
}
