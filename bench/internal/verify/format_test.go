package verify

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

func TestEncode(t *testing.T) {
	for _, tc := range []struct {
		typ   ccl.Type
		v     float64
		bits  uint64
		exact bool
	}{
		{ccl.TypeFloat32, 1, uint64(math.Float32bits(1)), true},
		{ccl.TypeFloat32, -16777216, uint64(math.Float32bits(-16777216)), true},
		{ccl.TypeFloat32, 16777217, 0, false},
		{ccl.TypeFloat64, -0.375, math.Float64bits(-0.375), true},
		{ccl.TypeFloat16, 1, 0x3c00, true},
		{ccl.TypeFloat16, -2048, 0xe800, true},
		{ccl.TypeFloat16, 2049, 0, false},
		{ccl.TypeFloat16, 65504, 0x7bff, true},
		{ccl.TypeFloat16, 65536, 0, false},
		{ccl.TypeFloat16, 0x1p-14, 0x0400, true},
		{ccl.TypeFloat16, 0x1p-15, 0, false},
		{ccl.TypeBFloat16, 256, 0x4380, true},
		{ccl.TypeBFloat16, 257, 0, false},
		{ccl.TypeFloat8E4M3, -1.5, 0xbc, true},
		{ccl.TypeFloat8E5M2, 2, 0x40, true},
		{ccl.TypeFloat32, 0, 0, true},
	} {
		bits, exact := formatOf(tc.typ).encode(tc.v)
		require.Equal(t, tc.exact, exact, "%v %v", tc.typ, tc.v)
		require.Equal(t, tc.bits, bits, "%v %v", tc.typ, tc.v)
		if exact {
			require.Equal(t, tc.v, formatOf(tc.typ).decode(bits))
		}
	}
}

func TestDecodeSubnormal(t *testing.T) {
	require.Equal(t, 0x1p-24, formatOf(ccl.TypeFloat16).decode(1))
	require.Equal(t, 0.0, formatOf(ccl.TypeFloat32).decode(0))
}

func TestFormat(t *testing.T) {
	for _, tc := range []struct {
		typ  ccl.Type
		bits uint64
		want string
	}{
		{ccl.TypeInt8, 0xff, "-1"},
		{ccl.TypeUint8, 0xff, "255"},
		{ccl.TypeInt64, ^uint64(0), "-1"},
		{ccl.TypeUint64, ^uint64(0), "18446744073709551615"},
		{ccl.TypeFloat32, uint64(math.Float32bits(-2.5)), "-2.5"},
		{ccl.TypeFloat16, 0x3c00, "1"},
		{ccl.TypeFloat32, 0x7fc00000, "bits 0x7fc00000"},
	} {
		require.Equal(t, tc.want, Format(tc.typ, tc.bits))
	}
}

func TestPutGet(t *testing.T) {
	for _, size := range []int{1, 2, 4, 8} {
		b := make([]byte, size)
		want := uint64(0x8182838485868788) & (^uint64(0) >> (64 - 8*size))
		put(b, size, want)
		require.Equal(t, want, get(b, size))
	}
}
