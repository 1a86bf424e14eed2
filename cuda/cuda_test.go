//go:build linux && cgo && nccl

package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

// Every element type of ccl is one of memory, and memory and streams are ccl's.
func memory[T ccl.Number](d cuda.Device) (ccl.Memory[T], error) { return cuda.Alloc[T](d, 1) }

var (
	_            = memory[ccl.BFloat16]
	_ ccl.Stream = (*cuda.Stream)(nil)
)

func TestCUDA(t *testing.T) {
	gputest.Use(t)
	if err := cuda.Available(); err != nil {
		t.Skip("hardware: " + err.Error())
	}
	n, err := cuda.Count()
	require.NoError(t, err)
	all, err := cuda.Devices()
	require.NoError(t, err)
	require.Len(t, all, n)
	d, err := cuda.Local(0, 1)
	require.NoError(t, err)
	first, err := cuda.At(0)
	require.NoError(t, err)
	require.Equal(t, first, d)
	require.Equal(t, "cuda:0", d.String())
	driver, runtime, err := cuda.Versions()
	require.NoError(t, err)
	require.Positive(t, driver)
	require.Positive(t, runtime)
	require.NotEmpty(t, cuda.Library())

	x, err := cuda.Alloc[float32](d, 3)
	require.NoError(t, err)
	defer x.Free()
	m, err := cuda.AllocManaged[float32](d, 3)
	require.NoError(t, err)
	defer m.Free()
	h, err := cuda.AllocHost[float32](d, 3)
	require.NoError(t, err)
	defer h.Free()
	s, err := d.NewStream()
	require.NoError(t, err)
	defer s.Close()
	copy(h.Slice(), []float32{1, 2, 3})
	require.NoError(t, x.PutOn(s, h))
	require.NoError(t, m.CopyOn(s, x))
	require.NoError(t, s.Synchronize())
	got, err := m.Slice()
	require.NoError(t, err)
	require.Equal(t, []float32{1, 2, 3}, got)
	b := ccl.Device(x)
	require.Equal(t, 3, b.Len())
	require.Equal(t, ccl.TypeFloat32, b.Type())
}
