//go:build (nccl || rccl) && cgo && linux

package native

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/engine"
)

// What bench does on a device: memory, of the device's own or managed, times, and graphs. What is made is given back.
func TestDevices(t *testing.T) {
	vendors(t, func(t *testing.T, v *vendor) {
		leaks(t, v)
		devices := map[string]engine.Devices{"nccl": devicesOf[gpu.CUDA](), "rccl": devicesOf[gpu.ROCm]()}[v.name]
		n, err := devices.Count()
		require.NoError(t, err)
		require.Positive(t, n)
		_, err = devices.Open(n, 0, 1)
		require.Error(t, err)
		d, err := devices.Open(-1, 1, 2)
		require.NoError(t, err)
		require.Equal(t, 1, d.Number)
		require.NotEmpty(t, d.Name)

		for _, managed := range []bool{false, true} {
			b, err := d.Alloc(managed, 3)
			require.NoError(t, err)
			require.NoError(t, b.Put([]byte{1, 2, 3}))
			got := make([]byte, 3)
			require.NoError(t, b.Get(got))
			require.Equal(t, []byte{1, 2, 3}, got)
			at, ok := b.Ptr()
			require.True(t, ok)
			same, err := d.At(at, 3)
			require.NoError(t, err)
			require.Equal(t, 1, same.Device())
			require.NoError(t, b.Free())
		}

		require.NoError(t, d.Clock.Start())
		require.NoError(t, d.Clock.Stop())
		took, err := d.Clock.Took()
		require.NoError(t, err)
		require.Less(t, took, time.Minute)

		launch, end, err := d.Capture(func() error { return nil })
		require.NoError(t, err)
		require.NoError(t, launch())
		require.NoError(t, end())
		wrong := errors.New("wrong")
		_, _, err = d.Capture(func() error { return wrong })
		require.ErrorIs(t, err, wrong)
		require.NoError(t, d.Close())
	})
}
