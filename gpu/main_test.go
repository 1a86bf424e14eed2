//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestMain(m *testing.M) {
	switch os.Getenv("GPU_TEST_PROBE") {
	case "":
	case "failure":
		probeFailure()
		return
	case "kernel":
		probeKernel()
		return
	default:
		probe()
		return
	}
	os.Exit(m.Run())
}

// both runs f on each of the two runtimes.
func both(t *testing.T, f func(t *testing.T, rt *gputest.Runtime, d gputest.Device)) {
	t.Helper()
	on(t, f, gputest.CUDA, gputest.HIP)
}

// on runs f on runtimes.
func on(t *testing.T, f func(t *testing.T, rt *gputest.Runtime, d gputest.Device), runtimes ...*gputest.Runtime) {
	t.Helper()
	gputest.Use(t)
	driver := os.Getenv("GPU_TEST_DRIVER")
	if driver != "" {
		t.Setenv("GOCCL_CUDART_LIB", driver)
	}
	some := false
	for _, rt := range runtimes {
		t.Run(rt.Name(), func(t *testing.T) {
			d, err := rt.Device(0)
			if gputest.Real() && err != nil {
				t.Skip("hardware: " + err.Error())
			}
			require.NoError(t, err)
			some = true
			if driver != "" && rt == gputest.CUDA {
				require.Equal(t, driver, rt.Path())
			}
			f(t, rt, d)
		})
	}
	require.True(t, some || !gputest.Real(), "no runtime has a device")
}

// prefix of names and errors: "cuda" or "hip", "cuda" or "rocm".
func prefix(rt *gputest.Runtime) (symbols, pkg string) {
	if rt == gputest.HIP {
		return "hip", "rocm"
	}
	return "cuda", "cuda"
}

// probe prints what a process with this environment says, a line for each question.
func probe() {
	for _, rt := range []*gputest.Runtime{gputest.CUDA, gputest.HIP} {
		fmt.Printf("%s open: %v\n", rt.Name(), rt.Open())
		n, err := rt.Count()
		fmt.Printf("%s count: %d %v\n", rt.Name(), n, err)
		_, err = rt.Device(5)
		fmt.Printf("%s device 5: %v\n", rt.Name(), err)
		if n > 0 {
			d, _ := rt.Device(0)
			address, err := d.PCI()
			fmt.Printf("%s address: %s %v\n", rt.Name(), address, err)
		}
	}
	n, err := gputest.CUDA.Choose(-1, 5, 6)
	fmt.Printf("choose: %d %v\n", n, err)
}

// probeIn is what probe prints in a process with env, line by line.
func probeIn(t *testing.T, env ...string) []string {
	t.Helper()
	gputest.Fake(t, "the answers are the fake's")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), "GPU_TEST_PROBE=1"), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func stream[P gpu.Platform](t *testing.T, d gpu.Device[P]) *gpu.Stream[P] {
	t.Helper()
	s, err := d.NewStream()
	require.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func alloc[T gpu.Element, P gpu.Platform](t *testing.T, d gpu.Device[P], n int) *gpu.Mem[T, P] {
	t.Helper()
	m, err := gpu.Alloc[T](d, n)
	require.NoError(t, err)
	t.Cleanup(func() { m.Free() })
	return m
}

func host[T gpu.Element, P gpu.Platform](t *testing.T, d gpu.Device[P], n int) *gpu.Host[T, P] {
	t.Helper()
	h, err := gpu.AllocHost[T](d, n)
	require.NoError(t, err)
	t.Cleanup(func() { h.Free() })
	return h
}

func ramp(n, from int) []int32 {
	s := make([]int32, n)
	for i := range s {
		s[i] = int32(from + i)
	}
	return s
}
