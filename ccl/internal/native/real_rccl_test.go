//go:build rccl && cgo && linux

package native

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/fake"
)

// fetch downloads the libraries.
const fetch = "../../../test/vendor/nccl/fetch.sh"

// TestRealRCCL: the real libraries load, and a start without a GPU is an error with its text. They are Debian's, with the
// loader and the C library of the Debian that they are of: this binary runs in them.
func TestRealRCCL(t *testing.T) {
	_, noFetch := os.Stat(fetch)
	switch {
	case noFetch != nil:
		t.Skip("hardware: no " + fetch + " here: this test was brought to the machine with its GPUs")
	case testing.Short():
		t.Skip("hardware: the libraries are some hundred MiB; not in a short run")
	case runtime.GOARCH != "amd64":
		t.Skip("hardware: the packages that are pinned are for linux/amd64")
	}
	if _, err := os.Stat("/dev/kfd"); err == nil {
		t.Skip("hardware: there is an AMD driver, and the answers are of machines without")
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		t.Skip("no apt-get: the packages are Debian's")
	}
	for _, tc := range []struct {
		rocm, hip string
		real      string // with ROCm's own runtime, which has no device here
		fake      string // with a runtime that has devices it is the library itself that finds none
	}{
		{"rccl-5.4.3", "libamdhip64.so.5", "RCCL 2.13.4, an id of 128 bytes, false, rocm: there is no device 0: no device is visible",
			"RCCL 2.13.4, an id of 128 bytes, true, RCCL 2.13.4: ncclCommInitRank: unhandled cuda error: HIP failure 'no ROCm-capable device is detected'"},
		// From ROCm 6 on the library asks its system management interface for devices before it makes an id.
		{"rccl-7.2.4", "libamdhip64.so.7", "RCCL 2.27.7: ncclGetUniqueId: unhandled cuda error", "RCCL 2.27.7: ncclGetUniqueId: unhandled cuda error"},
	} {
		t.Run(tc.rocm, func(t *testing.T) {
			var stderr strings.Builder
			cmd := exec.Command(fetch, tc.rocm)
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if e := (*exec.ExitError)(nil); errors.As(err, &e) && e.ExitCode() == 3 {
				t.Skipf("hardware: NOT RUN: %s", strings.TrimSpace(stderr.String()))
			}
			require.NoError(t, err, stderr.String())
			lib := filepath.Join(strings.TrimSpace(string(out)), "lib")
			start := func(of, runtime string) string {
				cmd := exec.CommandContext(within(t), filepath.Join(lib, "ld-linux-x86-64.so.2"), "--library-path", lib, os.Args[0])
				rccl := filepath.Join(lib, "librccl.so.1")
				cmd.Env = append(os.Environ(), rankVariable+"=0", ofVariable+"="+of, doVariable+"=start", "GOCCL_REAL=1", "GOCCL_ALLOW_FAKE=1",
					"GOCCL_RCCL_LIB="+rccl, "GOCCL_NCCL_LIB="+rccl, "GOCCL_HIP_LIB="+runtime, "GOCCL_CUDART_LIB="+runtime)
				out, _ := cmd.CombinedOutput() // status 1 is an error in words, like that of the start
				return string(out)
			}
			require.Contains(t, start("rccl", filepath.Join(lib, tc.hip)), tc.real)
			require.Contains(t, start("rccl", fake.Library(t)), tc.fake)
			for _, v := range compiledIn {
				if v.name == "nccl" {
					require.Contains(t, start("nccl", fake.Library(t)), "librccl.so.1 is RCCL, not NCCL; GOCCL_RCCL_LIB names it")
				}
			}
		})
	}
}
