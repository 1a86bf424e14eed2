//go:build !nccl

package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cuda"
)

func TestStub(t *testing.T) {
	const want = "cuda: this program was built without CUDA; build it with -tags nccl"
	var reason *cuda.Unavailable
	require.ErrorAs(t, cuda.Available(), &reason)
	require.Equal(t, "CUDA", reason.Runtime)
	require.EqualError(t, cuda.Available(), want)
	_, err := cuda.Count()
	require.EqualError(t, err, want)
	_, err = cuda.Devices()
	require.EqualError(t, err, want)
	_, err = cuda.At(0)
	require.EqualError(t, err, want)
	_, err = cuda.Local(0, 1)
	require.EqualError(t, err, want)
	_, _, err = cuda.Versions()
	require.EqualError(t, err, want)
	require.Empty(t, cuda.Library())
	for _, err := range []error{
		func() error { _, err := cuda.Alloc[int8](cuda.Device{}, 1); return err }(),
		func() error { _, err := cuda.AllocManaged[int8](cuda.Device{}, 1); return err }(),
		func() error { _, err := cuda.AllocHost[int8](cuda.Device{}, 1); return err }(),
	} {
		require.Error(t, err)
	}
}
