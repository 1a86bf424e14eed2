package ccl_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// A SendRecv in place sends what was there before, whatever the memory and whether processes read each other's.
func TestSendRecvInPlaceOfProcesses(t *testing.T) {
	for _, read := range []string{"0", "1"} {
		t.Run("GOCCL_SHM_READ="+read, func(t *testing.T) {
			t.Setenv("GOCCL_SHM_READ", read)
			ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
				n, r := c.Size(), c.Rank()
				from, to := (r+n-1)%n, (r+1)%n
				for _, bytes := range []int{64 << 10, 256 << 10, 1 << 20} {
					made, err := ccl.MakeSlice[int32](t.Context(), c, bytes/4)
					require.NoError(t, err)
					for _, x := range [][]int32{made, make([]int32, bytes/4)} {
						for step := range 20 {
							for i := range x {
								x[i] = int32(r*1_000_000 + step*1000 + i%997)
							}
							require.NoError(t, ccl.SendRecv(t.Context(), c, x, from, x, to))
							for i := range x {
								if want := int32(from*1_000_000 + step*1000 + i%997); x[i] != want {
									require.Equal(t, want, x[i], "rank %d, %d bytes, step %d, element %d", r, bytes, step, i)
								}
							}
						}
					}
					ccltest.Barrier(t, c)
					ccl.FreeSlice(made)
				}
			}, ccltest.Processes(3))
		})
	}
}
