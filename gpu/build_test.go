package gpu_test

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
	"github.com/goccl/goccl/rocm"
)

func main() {
	fmt.Println(cuda.Available())
	_, err := cuda.At(0)
	fmt.Println(err)
	_, err = cuda.Local(0, 1)
	fmt.Println(err)
	fmt.Println(rocm.Available())
}
`

// A program says what its build lacks, whatever the combination of tags.
func TestBuilds(t *testing.T) {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("hardware: no Go here: this test was brought to the machine with its GPUs")
	}
	dir, err := os.MkdirTemp(".", "_build-") // in the module, whose packages it imports
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o644))
	const (
		noCUDA    = "cuda: this program was built without CUDA; build it with -tags nccl\n"
		noHIP     = "rocm: this program was built without HIP; build it with -tags rccl\n"
		noCgoCUDA = "cuda: built with -tags nccl, but without cgo, which is needed to open libcudart.so.13; build with CGO_ENABLED=1 and a C compiler, on Linux\n"
		noCgoHIP  = "rocm: built with -tags rccl, but without cgo, which is needed to open libamdhip64.so.7; build with CGO_ENABLED=1 and a C compiler, on Linux\n"
	)
	for _, tc := range []struct {
		name, tags, cgo, want string
	}{
		{"no tag", "", "0", noCUDA + noCUDA + noCUDA + noHIP},
		{"no cgo", "nccl,rccl", "0", noCgoCUDA + noCgoCUDA + noCgoCUDA + noCgoHIP},
		{"one without cgo", "rccl", "0", noCUDA + noCUDA + noCUDA + noCgoHIP},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cache.Whole()
			cmd := exec.Command("go", "run", "-tags", tc.tags, "./"+dir)
			cmd.Env = append(os.Environ(), "CGO_ENABLED="+tc.cgo)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, string(out))
			require.Equal(t, tc.want, string(out))
		})
	}
}
