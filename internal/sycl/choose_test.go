package sycl_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/sycl"
)

func TestChoose(t *testing.T) {
	if os.Getenv("GOCCL_XPU_LIB") == "" {
		return // there is nothing to choose from: TestUnavailable
	}
	devices, err := sycl.Devices()
	require.NoError(t, err)
	n := len(devices)
	require.Positive(t, n)
	for _, tc := range []struct {
		want, local, locals, device int
		err                         string
	}{
		{-1, 0, 1, 0, ""},
		{-1, n - 1, n, n - 1, ""},
		{n - 1, 7, 8, n - 1, ""},
		{n, 0, 1, 0, fmt.Sprintf("xpu: no device %d: ", n)},
		{-1, 1, 1, 0, "xpu: local rank 1 of 1: a local rank is at least 0 and less than the number of local ranks"},
	} {
		got, err := sycl.Choose(tc.want, tc.local, tc.locals)
		require.Equal(t, tc.device, got)
		if tc.err == "" {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, tc.err)
		}
	}
	shared, err := sycl.Choose(-1, n, n+1)
	if n == 1 && !devices[0].GPU { // a CPU is for all
		require.NoError(t, err)
		require.Zero(t, shared)
	} else {
		require.ErrorContains(t, err, fmt.Sprintf("xpu: local rank %d of %d has no device of its own: ", n, n+1))
	}
	if n == 1 { // one device that a launcher has left is every rank's
		t.Setenv("ZE_AFFINITY_MASK", "3")
		got, err := sycl.Choose(-1, 2, 4)
		require.NoError(t, err)
		require.Zero(t, got)
	}
}
