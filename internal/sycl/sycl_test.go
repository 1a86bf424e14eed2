package sycl_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/sycl"
)

func TestKind(t *testing.T) {
	require.Equal(t, "device", sycl.OnDevice.String())
	require.Equal(t, "pinned host", sycl.OnHost.String())
	require.Equal(t, "shared", sycl.Shared.String())
	require.Equal(t, "no SYCL", sycl.Unknown.String())
	require.Equal(t, "no SYCL", sycl.Kind(9).String())
}

func TestError(t *testing.T) {
	require.EqualError(t, &sycl.Error{Call: "malloc_device", Text: "out of memory"}, "SYCL: malloc_device: out of memory")
}

// With no shim, what is missing is said, by all calls alike, and nothing crashes.
func TestUnavailable(t *testing.T) {
	if os.Getenv("GOCCL_XPU_LIB") != "" || sycl.Open() == nil {
		return // package xpu's tests are about a shim that is there
	}
	var u *sycl.Unavailable
	require.ErrorAs(t, sycl.Open(), &u)
	require.NotEmpty(t, u.Error())
	require.Equal(t, u.Error(), sycl.Visible())
	_, err := sycl.Devices()
	require.Equal(t, error(u), err)
	_, err = sycl.Choose(-1, 0, 1)
	require.Equal(t, error(u), err)
}
