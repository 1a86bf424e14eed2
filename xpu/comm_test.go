//go:build oneccl

package xpu_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/xpu"
)

// All that a program does on a device: memory, a queue, copies in its order, and a collective between them.
func TestComm(t *testing.T) {
	device(t)
	if os.Getenv("GOCCL_ONECCL_LIB") == "" {
		t.Skip("GOCCL_ONECCL_LIB names no oneCCL: make vendor-oneccl fetches one and runs this")
	}
	const ranks, n = 2, 100003
	ccltest.Run(t, ranks, func(t testing.TB, c *ccl.Comm) {
		d, err := xpu.Local(c.Place().Local, c.Place().Locals)
		require.NoError(t, err)
		q, err := d.NewQueue()
		require.NoError(t, err)
		defer q.Close()
		x, err := xpu.Alloc[float32](d, n)
		require.NoError(t, err)
		h, err := xpu.AllocHost[float32](d, n)
		require.NoError(t, err)
		for i := range h.Slice() {
			h.Slice()[i] = float32(i%7 + c.Rank())
		}
		require.NoError(t, x.PutOn(q, h))
		work := c.On(q).AllReduce(ccl.BufOfMemory(x), ccl.InPlace(), ccl.Sum)
		require.NoError(t, x.GetOn(q, h))
		require.NoError(t, work.Wait(t.Context()))
		require.NoError(t, q.Synchronize())
		for i, v := range h.Slice() {
			require.Equal(t, float32(ranks*(i%7)+ranks*(ranks-1)/2), v)
		}
		require.NoError(t, x.Free())
		require.NoError(t, h.Free())
	}, ccltest.Processes(ranks), ccltest.With(ccl.Options{Backend: "oneccl"}))
}
