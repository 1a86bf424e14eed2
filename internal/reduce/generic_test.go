package reduce

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// apply is op on single elements, given as bits.
func apply(t op.Type, o op.Op, a, b uint64) uint64 {
	x, y, z := make([]byte, 8), make([]byte, 8), make([]byte, 8)
	put(x, t.Size(), a)
	put(y, t.Size(), b)
	Generic(t, o)(unsafe.Pointer(&z[0]), unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), 1)
	return get(z, t.Size())
}

func TestGeneric(t *testing.T) {
	f32 := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	f64 := math.Float64bits
	for _, tc := range []struct {
		t          op.Type
		op         op.Op
		a, b, want uint64
	}{
		{op.Int8, op.Sum, 0x7f, 1, 0x80},
		{op.Int8, op.Prod, 0x90, 0x03, 0xb0},
		{op.Int8, op.Min, 0x80, 0x7f, 0x80},
		{op.Int8, op.Max, 0x80, 0x7f, 0x7f},
		{op.Int8, op.Avg, 3, 4, 7},
		{op.Uint8, op.Sum, 0xff, 2, 1},
		{op.Uint8, op.Min, 0x80, 0x7f, 0x7f},
		{op.Uint8, op.Max, 0x80, 0x7f, 0x80},
		{op.Int16, op.Sum, 0x7fff, 1, 0x8000},
		{op.Int16, op.Min, 0x8000, 1, 0x8000},
		{op.Uint16, op.Prod, 0x0101, 0x0101, 0x0201},
		{op.Uint16, op.Max, 0x8000, 1, 0x8000},
		{op.Int32, op.Sum, 0x7fffffff, 1, 0x80000000},
		{op.Int32, op.Max, 0x80000000, 5, 5},
		{op.Uint32, op.Prod, 0x10001, 0x10001, 0x20001},
		{op.Uint32, op.Max, 0x80000000, 5, 0x80000000},
		{op.Int64, op.Sum, 1<<63 - 1, 1, 1 << 63},
		{op.Int64, op.Prod, 1<<63 | 3, 3, 1<<63 | 9},
		{op.Int64, op.Min, 1 << 63, 5, 1 << 63},
		{op.Uint64, op.Sum, 1<<64 - 1, 3, 2},
		{op.Uint64, op.Min, 1 << 63, 5, 5},

		{op.Float32, op.Sum, f32(1), f32(0x1p-24), f32(1)},
		{op.Float32, op.Sum, f32(1 + 0x1p-23), f32(0x1p-24), f32(1 + 0x1p-22)},
		{op.Float32, op.Prod, f32(0x1p-100), f32(0x1p-49), 1},
		{op.Float64, op.Sum, f64(0.1), f64(0.2), f64(0.30000000000000004)},
		{op.Float64, op.Prod, f64(3), f64(-0.5), f64(-1.5)},

		{op.Float16, op.Sum, 0x3c00, 0x1000, 0x3c00},  // 1 + 2^-11: to even
		{op.Float16, op.Sum, 0x3c01, 0x1000, 0x3c02},  // to even, upwards
		{op.Float16, op.Sum, 0x0001, 0x0001, 0x0002},  // denormals
		{op.Float16, op.Sum, 0x7bff, 0x4c00, 0x7c00},  // 65504 + 16 overflows
		{op.Float16, op.Prod, 0x0400, 0x3800, 0x0200}, // a denormal product
		{op.Float16, op.Prod, 0x0001, 0x3800, 0x0000}, // half the smallest: to even
		{op.BFloat16, op.Sum, 0x3f80, 0x3b80, 0x3f80}, // 1 + 2^-8: to even
		{op.BFloat16, op.Sum, 0x3f81, 0x3b80, 0x3f82},
		{op.BFloat16, op.Sum, 0x0001, 0x0001, 0x0002},
		{op.BFloat16, op.Sum, 0x7f7f, 0x7f7f, 0x7f80},
		{op.BFloat16, op.Prod, 0x0080, 0x3f00, 0x0040},

		// Minima and maxima have an order of zeros, and NaNs, which become quiet.
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

// TestGenericNaN has the NaNs of Sum and Prod, of which only the sort is specified.
func TestGenericNaN(t *testing.T) {
	for _, tc := range []struct {
		op   op.Op
		a, b uint64
	}{
		{op.Sum, 0x7f800000, 0xff800000}, {op.Prod, 0x7f800000, 0}, {op.Sum, 0x7f800001, 0}, {op.Prod, 1, 0xffc00000},
	} {
		z := math.Float32frombits(uint32(apply(op.Float32, tc.op, tc.a, tc.b)))
		require.True(t, z != z, "%v %#x %#x", tc.op, tc.a, tc.b)
	}
}
