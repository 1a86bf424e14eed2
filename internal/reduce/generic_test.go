package reduce

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// apply is op on single elements, given as bits.
func apply(t Type, op Op, a, b uint64) uint64 {
	x, y, z := make([]byte, 8), make([]byte, 8), make([]byte, 8)
	put(x, t.Size(), a)
	put(y, t.Size(), b)
	Generic(t, op)(unsafe.Pointer(&z[0]), unsafe.Pointer(&x[0]), unsafe.Pointer(&y[0]), 1)
	return get(z, t.Size())
}

func TestGeneric(t *testing.T) {
	f32 := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	f64 := math.Float64bits
	for _, tc := range []struct {
		t          Type
		op         Op
		a, b, want uint64
	}{
		{Int8, Sum, 0x7f, 1, 0x80},
		{Int8, Prod, 0x90, 0x03, 0xb0},
		{Int8, Min, 0x80, 0x7f, 0x80},
		{Int8, Max, 0x80, 0x7f, 0x7f},
		{Int8, Avg, 3, 4, 7},
		{Uint8, Sum, 0xff, 2, 1},
		{Uint8, Min, 0x80, 0x7f, 0x7f},
		{Uint8, Max, 0x80, 0x7f, 0x80},
		{Int16, Sum, 0x7fff, 1, 0x8000},
		{Int16, Min, 0x8000, 1, 0x8000},
		{Uint16, Prod, 0x0101, 0x0101, 0x0201},
		{Uint16, Max, 0x8000, 1, 0x8000},
		{Int32, Sum, 0x7fffffff, 1, 0x80000000},
		{Int32, Max, 0x80000000, 5, 5},
		{Uint32, Prod, 0x10001, 0x10001, 0x20001},
		{Uint32, Max, 0x80000000, 5, 0x80000000},
		{Int64, Sum, 1<<63 - 1, 1, 1 << 63},
		{Int64, Prod, 1<<63 | 3, 3, 1<<63 | 9},
		{Int64, Min, 1 << 63, 5, 1 << 63},
		{Uint64, Sum, 1<<64 - 1, 3, 2},
		{Uint64, Min, 1 << 63, 5, 5},

		{Float32, Sum, f32(1), f32(0x1p-24), f32(1)},
		{Float32, Sum, f32(1 + 0x1p-23), f32(0x1p-24), f32(1 + 0x1p-22)},
		{Float32, Prod, f32(0x1p-100), f32(0x1p-49), 1},
		{Float64, Sum, f64(0.1), f64(0.2), f64(0.30000000000000004)},
		{Float64, Prod, f64(3), f64(-0.5), f64(-1.5)},

		{Float16, Sum, 0x3c00, 0x1000, 0x3c00},  // 1 + 2^-11: to even
		{Float16, Sum, 0x3c01, 0x1000, 0x3c02},  // to even, upwards
		{Float16, Sum, 0x0001, 0x0001, 0x0002},  // denormals
		{Float16, Sum, 0x7bff, 0x4c00, 0x7c00},  // 65504 + 16 overflows
		{Float16, Prod, 0x0400, 0x3800, 0x0200}, // a denormal product
		{Float16, Prod, 0x0001, 0x3800, 0x0000}, // half the smallest: to even
		{BFloat16, Sum, 0x3f80, 0x3b80, 0x3f80}, // 1 + 2^-8: to even
		{BFloat16, Sum, 0x3f81, 0x3b80, 0x3f82},
		{BFloat16, Sum, 0x0001, 0x0001, 0x0002},
		{BFloat16, Sum, 0x7f7f, 0x7f7f, 0x7f80},
		{BFloat16, Prod, 0x0080, 0x3f00, 0x0040},
	} {
		require.Equal(t, tc.want, apply(tc.t, tc.op, tc.a, tc.b), "%v %v %#x %#x", tc.t, tc.op, tc.a, tc.b)
	}
}

// TestGenericNaN has the NaNs of Sum and Prod, of which only the sort is specified.
func TestGenericNaN(t *testing.T) {
	for _, tc := range []struct {
		op   Op
		a, b uint64
	}{
		{Sum, 0x7f800000, 0xff800000}, {Prod, 0x7f800000, 0}, {Sum, 0x7f800001, 0}, {Prod, 1, 0xffc00000},
	} {
		z := math.Float32frombits(uint32(apply(Float32, tc.op, tc.a, tc.b)))
		require.True(t, z != z, "%v %#x %#x", tc.op, tc.a, tc.b)
	}
}
