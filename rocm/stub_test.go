//go:build !rccl

package rocm_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/rocm"
)

func TestStub(t *testing.T) {
	const want = "rocm: this program was built without HIP; build it with -tags rccl"
	var reason *rocm.Unavailable
	require.ErrorAs(t, rocm.Available(), &reason)
	require.Equal(t, "HIP", reason.Runtime)
	require.EqualError(t, rocm.Available(), want)
	_, err := rocm.Count()
	require.EqualError(t, err, want)
	_, err = rocm.Devices()
	require.EqualError(t, err, want)
	_, err = rocm.At(0)
	require.EqualError(t, err, want)
	_, err = rocm.Local(0, 1)
	require.EqualError(t, err, want)
	_, _, err = rocm.Versions()
	require.EqualError(t, err, want)
	require.Empty(t, rocm.Library())
	for _, err := range []error{
		func() error { _, err := rocm.Alloc[int8](rocm.Device{}, 1); return err }(),
		func() error { _, err := rocm.AllocManaged[int8](rocm.Device{}, 1); return err }(),
		func() error { _, err := rocm.AllocHost[int8](rocm.Device{}, 1); return err }(),
	} {
		require.Error(t, err)
	}
}
