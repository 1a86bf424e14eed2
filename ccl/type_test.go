package ccl_test

import (
	"math"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl"
)

type (
	namedInt8  int8
	namedInt   int
	namedUint  uint
	namedFloat float64
)

func TestTypeOf(t *testing.T) {
	word := map[int]ccl.Type{32: ccl.TypeInt32, 64: ccl.TypeInt64}[bits.UintSize]
	uword := map[int]ccl.Type{32: ccl.TypeUint32, 64: ccl.TypeUint64}[bits.UintSize]
	for _, tc := range []struct {
		got, want ccl.Type
		size      int
	}{
		{ccl.TypeOf[int8](), ccl.TypeInt8, 1},
		{ccl.TypeOf[uint8](), ccl.TypeUint8, 1},
		{ccl.TypeOf[int16](), ccl.TypeInt16, 2},
		{ccl.TypeOf[uint16](), ccl.TypeUint16, 2},
		{ccl.TypeOf[int32](), ccl.TypeInt32, 4},
		{ccl.TypeOf[uint32](), ccl.TypeUint32, 4},
		{ccl.TypeOf[int64](), ccl.TypeInt64, 8},
		{ccl.TypeOf[uint64](), ccl.TypeUint64, 8},
		{ccl.TypeOf[float32](), ccl.TypeFloat32, 4},
		{ccl.TypeOf[float64](), ccl.TypeFloat64, 8},
		{ccl.TypeOf[ccl.Float16](), ccl.TypeFloat16, 2},
		{ccl.TypeOf[ccl.BFloat16](), ccl.TypeBFloat16, 2},
		{ccl.TypeOf[ccl.Float8E4M3](), ccl.TypeFloat8E4M3, 1},
		{ccl.TypeOf[ccl.Float8E5M2](), ccl.TypeFloat8E5M2, 1},
		{ccl.TypeOf[int](), word, bits.UintSize / 8},
		{ccl.TypeOf[uint](), uword, bits.UintSize / 8},
		{ccl.TypeOf[namedInt8](), ccl.TypeInt8, 1},
		{ccl.TypeOf[namedInt](), word, bits.UintSize / 8},
		{ccl.TypeOf[namedUint](), uword, bits.UintSize / 8},
		{ccl.TypeOf[namedFloat](), ccl.TypeFloat64, 8},
	} {
		assert.Equal(t, tc.want, tc.got)
		assert.Equal(t, tc.size, tc.got.Size())
	}
}

// The zero value and what is beyond the lists have names, and no size.
func TestNamesOfNothing(t *testing.T) {
	assert.Equal(t, "none", ccl.TypeNone.String())
	assert.Equal(t, "none", ccl.Type(200).String())
	assert.Equal(t, 0, ccl.Type(200).Size())
	assert.Equal(t, "none", ccl.Op(9).String())
	assert.Equal(t, "unknown", ccl.Kind(0).String())
	assert.Equal(t, "unknown", ccl.Kind(200).String())
	assert.Equal(t, "rejected", ccl.State(4).String())
	assert.Equal(t, "off", ccl.Check(2).String())
}

func TestKindNames(t *testing.T) {
	want := []string{"AllReduce", "Reduce", "ReduceScatter", "ReduceScatterV", "Broadcast", "AllGather", "AllGatherV",
		"Gather", "GatherV", "Scatter", "ScatterV", "AllToAll", "AllToAllV", "Send", "Recv", "SendRecv", "Barrier", "Split", "Group"}
	for i, name := range want {
		assert.Equal(t, name, ccl.Kind(i+1).String())
	}
}

func TestFloat8(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, tc := range []struct {
		x     float32
		e4m3  ccl.Float8E4M3
		e4m3x float32 // its value
		e5m2  ccl.Float8E5M2
		e5m2x float32
		what  string
	}{
		{0, 0, 0, 0, 0, "zero"},
		{float32(math.Copysign(0, -1)), 0x80, float32(math.Copysign(0, -1)), 0x80, float32(math.Copysign(0, -1)), "negative zero"},
		{1, 0x38, 1, 0x3c, 1, "one"},
		{-2, 0xc0, -2, 0xc0, -2, "two"},
		{1.0625, 0x38, 1, 0x3c, 1, "a tie of E4M3, to even"},
		{1.1875, 0x3a, 1.25, 0x3d, 1.25, "a tie of E4M3, up"},
		{448, 0x7e, 448, 0x5f, 448, "the largest E4M3"},
		{480, 0x7e, 448, 0x60, 512, "beyond it"},
		{57344, 0x7e, 448, 0x7b, 57344, "the largest E5M2"},
		{-65536, 0xfe, -448, 0xfb, -57344, "beyond it"},
		{inf, 0x7e, 448, 0x7b, 57344, "infinity"},
		{0x1p-9, 1, 0x1p-9, 0x18, 0x1p-9, "the least E4M3"},
		{0x1p-16, 0, 0, 1, 0x1p-16, "the least E5M2"},
	} {
		assert.Equal(t, tc.e4m3, ccl.ToFloat8E4M3(tc.x), "%s as E4M3", tc.what)
		assert.Equal(t, math.Float32bits(tc.e4m3x), math.Float32bits(tc.e4m3.Float32()), "%s from E4M3", tc.what)
		assert.Equal(t, tc.e5m2, ccl.ToFloat8E5M2(tc.x), "%s as E5M2", tc.what)
		assert.Equal(t, math.Float32bits(tc.e5m2x), math.Float32bits(tc.e5m2.Float32()), "%s from E5M2", tc.what)
	}
	assert.Equal(t, inf, ccl.Float8E5M2(0x7c).Float32())
	assert.NotEqual(t, ccl.ToFloat8E4M3(nan).Float32(), ccl.ToFloat8E4M3(nan).Float32())
	assert.NotEqual(t, ccl.ToFloat8E5M2(nan).Float32(), ccl.ToFloat8E5M2(nan).Float32())
}

func TestHalf(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, tc := range []struct {
		x    float32
		f    ccl.Float16
		fx   float32 // f's value
		b    ccl.BFloat16
		bx   float32
		name string
	}{
		{0, 0, 0, 0, 0, "zero"},
		{float32(math.Copysign(0, -1)), 0x8000, float32(math.Copysign(0, -1)), 0x8000, float32(math.Copysign(0, -1)), "negative zero"},
		{1, 0x3c00, 1, 0x3f80, 1, "one"},
		{-2, 0xc000, -2, 0xc000, -2, "two"},
		{1.0 / 3, 0x3555, 0.33325195, 0x3eab, 0.33398438, "a third"},
		{2049, 0x6800, 2048, 0x4500, 2048, "a tie, to even"},
		{2051, 0x6802, 2052, 0x4500, 2048, "a tie, up"},
		{65504, 0x7bff, 65504, 0x4780, 65536, "the largest half"},
		{65519.996, 0x7bff, 65504, 0x4780, 65536, "just below the half's limit"},
		{65520, 0x7c00, inf, 0x4780, 65536, "beyond half"},
		{inf, 0x7c00, inf, 0x7f80, inf, "infinity"},
		{-inf, 0xfc00, -inf, 0xff80, -inf, "negative infinity"},
		{math.MaxFloat32, 0x7c00, inf, 0x7f80, inf, "the largest float"},
		{5.9604645e-8, 1, 5.9604645e-8, 0x3380, 5.9604645e-8, "the least subnormal half"},
		{2.9802322e-8, 0, 0, 0x3300, 2.9802322e-8, "half of it"},
	} {
		assert.Equal(t, tc.f, ccl.ToFloat16(tc.x), "%s as half", tc.name)
		assert.Equal(t, math.Float32bits(tc.fx), math.Float32bits(tc.f.Float32()), "%s from half", tc.name)
		assert.Equal(t, tc.b, ccl.ToBFloat16(tc.x), "%s as bfloat16", tc.name)
		assert.Equal(t, math.Float32bits(tc.bx), math.Float32bits(tc.b.Float32()), "%s from bfloat16", tc.name)
	}
	nan := float32(math.NaN())
	assert.NotEqual(t, ccl.ToFloat16(nan).Float32(), ccl.ToFloat16(nan).Float32())
	assert.NotEqual(t, ccl.ToBFloat16(nan).Float32(), ccl.ToBFloat16(nan).Float32())
}
