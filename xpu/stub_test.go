//go:build !oneccl

package xpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/xpu"
)

func TestStub(t *testing.T) {
	const want = "xpu: SYCL is not compiled in: build with -tags oneccl"
	var reason *xpu.Unavailable
	require.ErrorAs(t, xpu.Available(), &reason)
	require.EqualError(t, xpu.Available(), want)
	_, err := xpu.Count()
	require.EqualError(t, err, want)
	_, err = xpu.Devices()
	require.EqualError(t, err, want)
	_, err = xpu.At(0)
	require.EqualError(t, err, want)
	_, err = xpu.Local(0, 1)
	require.EqualError(t, err, want)
	_, err = xpu.Alloc[int8](xpu.Device{}, 1)
	require.EqualError(t, err, want)
	_, err = xpu.AllocManaged[int8](xpu.Device{}, 1)
	require.EqualError(t, err, want)
	_, err = xpu.AllocHost[int8](xpu.Device{}, 1)
	require.EqualError(t, err, want)
	_, err = xpu.Device{}.NewQueue()
	require.EqualError(t, err, want)
	_, err = xpu.Device{}.NewEvent()
	require.EqualError(t, err, want)
}
