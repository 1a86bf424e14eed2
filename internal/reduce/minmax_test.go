package reduce

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
