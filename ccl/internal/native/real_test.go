//go:build nccl && cgo && linux

package native

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// TestRealNCCL: the real libraries load, and a start without a GPU is an error with its text.
func TestRealNCCL(t *testing.T) {
	switch {
	case testing.Short():
		t.Skip("hardware: the libraries are some hundred MiB; not in a short run")
	case runtime.GOARCH != "amd64":
		t.Skip("hardware: the wheels that are pinned are for linux/amd64")
	}
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("hardware: there is an NVIDIA driver, and the answers are of machines without")
	}
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 (Debian: apt-get install python3-pip)")
	}
	fetch := func(script, version string) string {
		cmd := exec.Command(script, version)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		require.NoError(t, err)
		return strings.TrimSpace(string(out))
	}
	for name, version := range map[string]string{"nccl-2.18.3": "2.18.3", "nccl-2.23.4": "2.23.4", "nccl-2.27.3": "2.27.3",
		"nccl-2.30.7": "2.30.7", "nccl-2.32.3": "2.32.3"} {
		t.Run(version, func(t *testing.T) {
			library := fetch("../../../test/vendor/nccl/fetch.sh", name) + "/lib/libnccl.so.2"
			start := func(cudart string) string {
				cmd := exec.CommandContext(within(t), os.Args[0]) // what is fetched is here by then
				cmd.Env = append(os.Environ(), rankVariable+"=0", ofVariable+"=nccl", doVariable+"=start", "GOCCL_REAL=1",
					"GOCCL_NCCL_LIB="+library, "GOCCL_CUDART_LIB="+cudart)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				return string(out)
			}
			said := "NCCL " + version + ", an id of 128 bytes, "
			require.Equal(t, said+"false, cuda: no NVIDIA driver is loaded on this machine (cudaGetDeviceCount: CUDA driver version is insufficient for CUDA runtime version)\n",
				start(fetch("../../../test/vendor/cudart/fetch.sh", "cuda-12.9.79")+"/lib/libcudart.so.12"))
			// With a runtime that has devices it is the library itself that finds none.
			require.Contains(t, start(fake.Library(t)), said+"true, NCCL "+version+": ncclCommInitRank: unhandled cuda error")
		})
	}
}
