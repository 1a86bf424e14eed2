package host

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// What Memory adds and converts is done in the order of its stream, more than its ring holds as well, and
// what Now does is done at once.
func TestOrder(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		h := New(t.Context(), c)
		sum, err := h.Alloc(ccl.TypeFloat32, 3)
		require.NoError(t, err)
		one := ccl.BufOf([]float64{1, 2, 3})
		require.NoError(t, h.Convert(sum, one)) // sum is 1, 2, 3
		for range 200 {
			require.NoError(t, h.Add(sum, sum))
			require.NoError(t, h.Convert(sum, one))
		}
		require.NoError(t, h.Add(sum, sum))
		require.NoError(t, h.S.Do(Nothing).Wait(t.Context()))
		got, _ := ccl.SliceOf[float32](sum)
		require.Equal(t, []float32{2, 4, 6}, got)
		require.NoError(t, Now{h}.Add(sum, sum))
		require.Equal(t, []float32{4, 8, 12}, got)
		require.NoError(t, h.S.Close())
		require.NoError(t, h.Free(sum))
	})
}
