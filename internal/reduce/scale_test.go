package reduce

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

func TestScale(t *testing.T) {
	for _, tc := range []struct {
		t     op.Type
		x     uint64
		ranks int
		want  uint64
	}{
		{op.Int8, 0xf9, 2, 0xfd}, // -7 / 2 = -3
		{op.Int8, 0x80, 200, 0},
		{op.Uint8, 0xf9, 2, 0x7c},
		{op.Int16, 0x8000, 3, 0xd556},
		{op.Uint16, 0x8000, 3, 0x2aaa},
		{op.Int32, 0x80000000, 2, 0xc0000000},
		{op.Uint32, 0xffffffff, 3, 0x55555555},
		{op.Int64, 1<<64 - 10, 3, 1<<64 - 3},
		{op.Uint64, 1<<64 - 1, 5, 0x3333333333333333},
		{op.Float16, 0x3c00, 3, 0x3555},
		{op.BFloat16, 0x3f80, 3, 0x3eab},
		{op.Float32, uint64(math.Float32bits(1)), 3, 0x3eaaaaab},
		{op.Float64, math.Float64bits(1), 10, math.Float64bits(0.1)},
		{op.Float32, 0x7f800001, 1, 0x7f800001}, // unchanged
	} {
		b := make([]byte, 8)
		put(b, tc.t.Size(), tc.x)
		scale := generic.scale[tc.t]
		scale(unsafe.Pointer(&b[0]), 1, tc.ranks)
		require.Equal(t, tc.want, get(b, tc.t.Size()), "%v %#x / %d", tc.t, tc.x, tc.ranks)
	}
}

// TestReciprocal has the numbers around multiples, where a quotient changes.
func TestReciprocal(t *testing.T) {
	for _, ranks := range []int{2, 3, 5, 6, 7, 10, 641, 1 << 16, 1<<16 + 1, 1<<31 - 1, math.MaxInt} {
		var xs []uint32
		for k := range uint64(50) {
			for _, multiple := range []uint64{k * uint64(ranks), (math.MaxUint32/uint64(ranks) - k) * uint64(ranks)} {
				xs = append(xs, uint32(multiple-1), uint32(multiple), uint32(multiple+1))
			}
		}
		us, ss := make([]uint32, len(xs)), make([]int32, len(xs))
		for i, x := range xs {
			us[i], ss[i] = x, int32(x)
		}
		scaleUnsigned[uint32](unsafe.Pointer(&us[0]), len(us), ranks)
		scaleSigned[int32](unsafe.Pointer(&ss[0]), len(ss), ranks)
		for i, x := range xs {
			require.Equal(t, uint32(uint64(x)/uint64(ranks)), us[i], "%d / %d", x, ranks)
			require.Equal(t, int32(int64(int32(x))/int64(ranks)), ss[i], "%d / %d", int32(x), ranks)
		}
	}
}
