//go:build cu

package cu_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	gorgonia "gorgonia.org/cu"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/interop/cu"
)

var (
	_ ccl.Stream          = (*cu.Stream)(nil)
	_ ccl.Memory[float32] = (*cu.Mem[float32])(nil)
)

// It runs only where a GPU is: without one, importing gorgonia.org/cu ends the process before main.
func TestOnGPU(t *testing.T) {
	ctx := gorgonia.NewContext(gorgonia.Device(0), gorgonia.SchedAuto)
	defer ctx.Close()
	p, err := ctx.MemAlloc(16)
	require.NoError(t, err)
	x, err := cu.Memory[float32](p, 4, 0)
	require.NoError(t, err)
	b := ccl.BufOfMemory(x)
	require.Equal(t, 4, b.Len())
	require.Equal(t, ccl.TypeFloat32, b.Type())
	addr, ok := x.Ptr()
	require.True(t, ok)
	require.Equal(t, p.Uintptr(), addr)

	native, err := ctx.MakeStream(gorgonia.NonBlocking)
	require.NoError(t, err)
	s := cu.NewStream(native)
	h, ok := s.Handle()
	require.True(t, ok)
	require.NotZero(t, h)

	_, err = cu.Memory[float32](p, -1, 0)
	require.Error(t, err)
	_, err = cu.Memory[float32](0, 1, 0)
	require.Error(t, err)
	_, err = cu.Memory[float32](p, 1, -1)
	require.Error(t, err)
}
