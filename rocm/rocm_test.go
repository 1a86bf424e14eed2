//go:build linux && cgo && rccl

package rocm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/rocm"
)

// Every element type of ccl is one of memory, and memory and streams are ccl's.
func memory[T ccl.Number](d rocm.Device) (ccl.Memory[T], error) { return rocm.Alloc[T](d, 1) }

var (
	_            = memory[ccl.BFloat16]
	_ ccl.Stream = (*rocm.Stream)(nil)
)

func TestROCm(t *testing.T) {
	gputest.Use(t)
	if err := rocm.Available(); err != nil {
		t.Skip("hardware: " + err.Error())
	}
	n, err := rocm.Count()
	require.NoError(t, err)
	all, err := rocm.Devices()
	require.NoError(t, err)
	require.Len(t, all, n)
	d, err := rocm.Local(0, 1)
	require.NoError(t, err)
	first, err := rocm.At(0)
	require.NoError(t, err)
	require.Equal(t, first, d)
	require.Equal(t, "rocm:0", d.String())
	driver, runtime, err := rocm.Versions()
	require.NoError(t, err)
	require.Positive(t, driver)
	require.Positive(t, runtime)
	require.NotEmpty(t, rocm.Library())

	x, err := rocm.Alloc[float32](d, 3)
	require.NoError(t, err)
	defer x.Free()
	m, err := rocm.AllocManaged[float32](d, 3)
	require.NoError(t, err)
	defer m.Free()
	h, err := rocm.AllocHost[float32](d, 3)
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
