//go:build (amd64 || arm64) && !noasm

package reduce

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// TestPieces has a kernel that writes down how it is called.
func TestPieces(t *testing.T) {
	const most = piece / 4
	b := make([]byte, 3*piece)
	base := unsafe.Pointer(&b[0])
	type call struct{ at, n int }
	for _, tc := range []struct {
		step, n int
		want    []call
	}{
		{0, 0, nil},
		{0, 1, []call{{0, 1}}},
		{0, most, []call{{0, most}}},
		{0, most + 1, []call{{0, most}, {piece, 1}}},
		{0, 2*most + 5, []call{{0, most}, {piece, most}, {2 * piece, 5}}},
		{32, 7, nil}, // the specification's
		{32, 17, []call{{0, 16}}},
		{32, most + 9, []call{{0, most}, {piece, 8}}},
	} {
		var got []call
		f := pieces(tc.step, op.Float32, op.Sum, func(dst, a, b unsafe.Pointer, n int) {
			require.Equal(t, dst, a)
			require.Equal(t, dst, b)
			got = append(got, call{int(uintptr(dst) - uintptr(base)), n})
		})
		f(base, base, base, tc.n)
		require.Equal(t, tc.want, got, "step %d, n %d", tc.step, tc.n)
	}
}
