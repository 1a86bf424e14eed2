package cudart

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

const program = `package main

import (
	"fmt"

	"github.com/goccl/goccl/cuda"
)

func main() {
	fmt.Println(cuda.Available())
	driver, runtime, err := cuda.Versions()
	fmt.Println(driver, runtime, err)
	_, err = cuda.At(0)
	fmt.Println(err)
	defer func() { fmt.Println("recovered:", recover() != nil) }()
	fmt.Println(*none)
}

var none *int // a library that takes signals for itself would end the process here
`

// The real library loads without a driver, and says so.
func TestRealLibrary(t *testing.T) {
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("hardware: there is an NVIDIA driver, and the answers are of machines without")
	}
	dir, err := os.MkdirTemp(".", "_real-") // in the module, whose packages it imports
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
	binary := filepath.Join(t.TempDir(), "real")
	cache.Whole()
	build := exec.Command("go", "build", "-tags", "nccl", "-o", binary, "./"+dir)
	build.Env = append(os.Environ(), "CGO_ENABLED=1")
	out, err := build.CombinedOutput()
	require.NoError(t, err, string(out))
	for version, number := range map[string]string{"cuda-12.1.105": "12010", "cuda-12.9.79": "12090", "cuda-13.5.37": "13050"} {
		t.Run(version, func(t *testing.T) {
			found, err := filepath.Glob(filepath.Join(fetch(t, version), "lib", "libcudart.so.1[23]"))
			require.NoError(t, err)
			require.Len(t, found, 1)
			cmd := exec.Command(binary)
			cmd.Env = append(os.Environ(), "GOCCL_CUDART_LIB="+found[0], "CUDA_VISIBLE_DEVICES=")
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, "<nil>\n0 "+number+" <nil>\n"+
				"cuda: no NVIDIA driver is loaded on this machine (cudaGetDeviceCount: CUDA driver version is insufficient for CUDA runtime version)\n"+
				"recovered: true\n", string(out))
		})
	}
}
