package reduce

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// valueF16 is a finite half's value by the format's definition.
func valueF16(h uint16) float64 {
	sign := 1 - 2*float64(h>>15)
	if e := int(h >> 10 & 31); e > 0 {
		return sign * math.Ldexp(float64(1024+int(h&1023)), e-25)
	}
	return sign * math.Ldexp(float64(h&1023), -24)
}

func TestF16ToF32(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := F16ToF32(h)
		switch {
		case h&0x7fff < 0x7c00:
			require.Equal(t, math.Float32bits(float32(valueF16(h))), math.Float32bits(f), "%#x", h)
		case h&0x7fff == 0x7c00:
			require.Equal(t, math.Inf(1-2*int(h>>15)), float64(f), "%#x", h)
		default:
			require.Equal(t, uint32(h&0x8000)<<16|0x7fc00000|uint32(h&0x3ff)<<13, math.Float32bits(f), "%#x", h)
		}
	}
}

// TestF32ToF16 goes over all halves and what lies between neighbours: the middle,
// which goes to the even one, and its neighbours in float32.
func TestF32ToF16(t *testing.T) {
	for i := range 0x7c00 {
		low := uint16(i)
		even := low + low&1
		a := F16ToF32(low)
		b := a + 32 // what would follow the largest half
		if low+1 < 0x7c00 {
			b = F16ToF32(low + 1)
		}
		middle := (a + b) / 2
		for _, tc := range []struct {
			in   float32
			want uint16
		}{
			{a, low},
			{math.Nextafter32(middle, 0), low},
			{middle, even},
			{math.Nextafter32(middle, b), low + 1},
		} {
			if got := F32ToF16(tc.in); got != tc.want {
				t.Fatalf("%g: %#x, want %#x", tc.in, got, tc.want)
			}
			if got := F32ToF16(-tc.in); got != tc.want|0x8000 {
				t.Fatalf("%g: %#x, want %#x", -tc.in, got, tc.want|0x8000)
			}
		}
	}
	for _, tc := range []struct {
		in   uint32
		want uint16
	}{
		{0x00000001, 0x0000}, {0x80000001, 0x8000}, {0x007fffff, 0x0000}, // float32's denormals
		{0x477fffff, 0x7c00}, {0x47800000, 0x7c00}, {0x7f7fffff, 0x7c00}, {0xff7fffff, 0xfc00},
		{0x7f800000, 0x7c00}, {0xff800000, 0xfc00},
		{0x7f800001, 0x7e00}, {0xffc00000, 0xfe00}, {0x7fffffff, 0x7fff}, {0xffa02000, 0xff01},
	} {
		require.Equal(t, tc.want, F32ToF16(math.Float32frombits(tc.in)), "%#x", tc.in)
	}
}
