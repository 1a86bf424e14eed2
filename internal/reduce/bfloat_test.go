package reduce

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBF16ToF32(t *testing.T) {
	for i := range 1 << 16 {
		require.Equal(t, uint32(i)<<16, math.Float32bits(BF16ToF32(uint16(i))))
	}
}

// TestF32ToBF16 goes over all bfloats and what lies between neighbours: the middle,
// which goes to the even one, and its neighbours in float32.
func TestF32ToBF16(t *testing.T) {
	for i := range 1 << 16 {
		low, bits := uint16(i), uint32(i)<<16
		if low&0x7fff >= 0x7f80 {
			continue
		}
		for _, tc := range []struct {
			in   uint32
			want uint16
		}{
			{bits, low},
			{bits + 1, low},
			{bits + 0x7fff, low},
			{bits + 0x8000, low + low&1},
			{bits + 0x8001, low + 1},
			{bits + 0xffff, low + 1},
		} {
			if got := F32ToBF16(math.Float32frombits(tc.in)); got != tc.want {
				t.Fatalf("%#x: %#x, want %#x", tc.in, got, tc.want)
			}
		}
	}
	for _, tc := range []struct {
		in   uint32
		want uint16
	}{
		{0x7f800000, 0x7f80}, {0xff800000, 0xff80}, {0x7f7fffff, 0x7f80},
		{0x7f800001, 0x7fc0}, {0xff800001, 0xffc0}, {0x7fffffff, 0x7fff}, {0xffc12345, 0xffc1},
	} {
		require.Equal(t, tc.want, F32ToBF16(math.Float32frombits(tc.in)), "%#x", tc.in)
	}
}
