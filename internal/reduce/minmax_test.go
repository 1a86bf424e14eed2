package reduce

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestMinMaxOfFloats(t *testing.T) {
	f32 := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	f64 := math.Float64bits
	for _, tc := range []struct {
		t          op.Type
		op         op.Op
		a, b, want uint64
	}{
		{op.Float32, op.Min, 0, 0x80000000, 0x80000000},
		{op.Float32, op.Min, 0x80000000, 0, 0x80000000},
		{op.Float32, op.Max, 0, 0x80000000, 0},
		{op.Float32, op.Max, 0x80000000, 0, 0},
		{op.Float32, op.Min, 0x7f800000, f32(3), f32(3)},
		{op.Float32, op.Max, 0xff800000, f32(3), f32(3)},
		{op.Float32, op.Min, 0x7f800001, f32(3), 0x7fc00001},
		{op.Float32, op.Max, f32(3), 0xff812345, 0xffc12345},
		{op.Float32, op.Max, 0x7f800007, 0xffc00001, 0x7fc00007},
		{op.Float64, op.Min, 0, 1 << 63, 1 << 63},
		{op.Float64, op.Max, 1 << 63, 0, 0},
		{op.Float64, op.Min, f64(1), 0x7ff0000000000001, 0x7ff8000000000001},
		{op.Float64, op.Max, 0xfff0000000000002, 0x7ff0000000000001, 0xfff8000000000002},
		{op.Float16, op.Min, 0x0000, 0x8000, 0x8000},
		{op.Float16, op.Max, 0xfc00, 0x8001, 0x8001},
		{op.Float16, op.Max, 0x7c01, 0xfe00, 0x7e01},
		{op.BFloat16, op.Min, 0x0000, 0x8000, 0x8000},
		{op.BFloat16, op.Max, 0xff80, 0x8001, 0x8001},
		{op.BFloat16, op.Min, 0x3f80, 0xff81, 0xffc1},
	} {
		require.Equal(t, tc.want, apply(tc.t, tc.op, tc.a, tc.b), "%v %v %#x %#x", tc.t, tc.op, tc.a, tc.b)
	}
}

// TestOrder checks the order against that of the values, for both formats of 16 bits.
func TestOrder(t *testing.T) {
	for i := range 1 << 16 {
		for _, step := range []uint16{1, 7, 0x8000, 0x8001, 0x4321} {
			x, y := uint16(i), uint16(i)+step
			if a, b := BF16ToF32(x), BF16ToF32(y); a == a && b == b && a != b {
				require.Equal(t, a < b, order(x) < order(y), "%#x %#x", x, y)
			}
			if a, b := F16ToF32(x), F16ToF32(y); a == a && b == b && a != b {
				require.Equal(t, a < b, order(x) < order(y), "%#x %#x", x, y)
			}
		}
	}
	require.Less(t, order[uint16](0x8000), order[uint16](0))
}
