//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/fake"
)

func TestOpen(t *testing.T) {
	gputest.Fake(t, "the answers are the fake's")
	text := filepath.Join(t.TempDir(), "libcudart.so.12")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o644))
	fake := fake.Library(t)
	for _, tc := range []struct {
		name string
		env  []string
		want []string // lines, from their start
	}{
		{"all there", nil, []string{
			"CUDA open: <nil>", "CUDA count: 8 <nil>", "CUDA device 5: <nil>", "CUDA address: 0000:1a:00.0 <nil>",
			"HIP open: <nil>", "HIP count: 8 <nil>", "choose: 5 <nil>",
		}},
		{"no file", []string{"GOCCL_CUDART_LIB=/nowhere/libcudart.so"}, []string{
			"CUDA open: cuda: the CUDA runtime cannot be loaded: GOCCL_CUDART_LIB=/nowhere/libcudart.so: cannot open shared object file: No such file or directory. To fix this, install NVIDIA's driver, or the CUDA runtime (libcudart) 11, 12 or 13, or set GOCCL_CUDART_LIB to the library's file",
			"HIP open: <nil>",
		}},
		{"a text file", []string{"GOCCL_CUDART_LIB=" + text}, []string{
			"CUDA open: cuda: the CUDA runtime cannot be loaded: GOCCL_CUDART_LIB=" + text,
		}},
		{"libc", []string{"GOCCL_HIP_LIB=libc.so.6"}, []string{
			"CUDA open: <nil>", "HIP open: rocm: ", "HIP count: 0 rocm: ", "HIP device 5: rocm: ",
		}},
		{"a fake that nobody asked for", []string{"GOCCL_ALLOW_FAKE="}, []string{
			"CUDA open: cuda: " + fake + " is the fake library for tests, which computes on host memory; set GOCCL_ALLOW_FAKE=1 to allow it, or unset GOCCL_CUDART_LIB to use the real one",
		}},
		{"not named: what was tried", []string{"GOCCL_CUDART_LIB="}, []string{
			"CUDA open: cuda: the CUDA runtime cannot be loaded: GOCCL_CUDART_LIB is not set; libcudart.so.13: cannot open shared object file: No such file or directory; libcudart.so.12: ",
		}},
		{"no driver", []string{"FAKE_DRIVER=none", "FAKE_DEVICES=0"}, []string{
			"CUDA open: <nil>",
			"CUDA count: 0 cuda: no NVIDIA driver is loaded on this machine (cudaGetDeviceCount: CUDA driver version is insufficient for CUDA runtime version)",
			"HIP count: 0 rocm: no AMD driver is loaded on this machine (hipGetDeviceCount: ",
		}},
		{"no device", []string{"FAKE_DEVICES=0"}, []string{
			"CUDA open: <nil>", "CUDA count: 0 <nil>", "CUDA device 5: cuda: there is no device 5: no device is visible",
		}},
		{"hidden devices", []string{"CUDA_VISIBLE_DEVICES=6,2,9,1"}, []string{
			"CUDA count: 2 <nil>", "CUDA device 5: cuda: there is no device 5: 2 devices are visible, 0 to 1 (CUDA_VISIBLE_DEVICES=6,2,9,1)",
			"CUDA address: 0000:20:00.0 <nil>",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := probeIn(t, tc.env...)
			for _, want := range tc.want {
				require.Condition(t, func() bool {
					for _, line := range got {
						if len(line) >= len(want) && line[:len(want)] == want {
							return true
						}
					}
					return false
				}, "want %q in\n%q", want, got)
			}
		})
	}
}
