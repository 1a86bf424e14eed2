//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/test/fake"
)

// The driver in the runtime's place passes the runtime's tests.
func TestDriverForRuntime(t *testing.T) {
	if os.Getenv("GPU_TEST_DRIVER") != "" {
		t.Skip("hardware: this process is the one that this test has started")
	}
	gputest.Fake(t, "the machine's own driver is tested with GOCCL_CUDART_LIB=libcuda.so.1")
	runtime := fake.Library(t)
	driver := filepath.Join(t.TempDir(), "libcuda.so.1")
	out, err := exec.Command("cc", "-std=gnu11", "-Wall", "-Werror", "-fPIC", "-shared", "-o", driver, "testdata/libcuda.c",
		runtime, "-Wl,-rpath,"+filepath.Dir(runtime)).CombinedOutput()
	require.NoError(t, err, string(out))
	cmd := exec.Command(os.Args[0], "-test.run=/^CUDA$", "-test.v")
	cmd.Env = append(os.Environ(), "GPU_TEST_DRIVER="+driver)
	out, err = cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: TestGraph/CUDA")
}
