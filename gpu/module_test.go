//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

// image is testdata/kernels.ptx: saxpy(y, x, a, n) and place(out, b, h, f, d).
func image(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/kernels.ptx")
	require.NoError(t, err)
	return string(text)
}

// onCUDA is both, for what CUDA has alone.
func onCUDA(t *testing.T, f func(t *testing.T, d gpu.Device[gpu.CUDA])) {
	t.Helper()
	on(t, func(t *testing.T, _ *gputest.Runtime, _ gputest.Device) {
		d, err := gpu.At[gpu.CUDA](0)
		require.NoError(t, err)
		f(t, d)
	}, gputest.CUDA)
}

func load(t *testing.T, d gpu.Device[gpu.CUDA]) *gpu.Module {
	t.Helper()
	m, err := gpu.Load(d, []byte(image(t)))
	require.NoError(t, err)
	t.Cleanup(func() { m.Close() })
	return m
}

func kernel(t *testing.T, m *gpu.Module, name string) *gpu.Kernel {
	t.Helper()
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

var line = gpu.Shape{Grid: gpu.Dim{X: 4}, Block: gpu.Dim{X: 64}}

func TestKernel(t *testing.T) {
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		m, s := load(t, d), stream(t, d)
		saxpy := kernel(t, m, "saxpy")
		x, y := alloc[float32](t, d, 256), alloc[float32](t, d, 256)
		h, want := make([]float32, 256), make([]float32, 256)
		for i := range h {
			h[i] = float32(i)
			want[i] = 4 * float32(i)
			if i >= 200 {
				want[i] = float32(i)
			}
		}
		require.NoError(t, x.Put(h))
		require.NoError(t, y.Put(h))
		require.NoError(t, saxpy.Launch(s, line, y.Arg(), x.Arg(), gpu.Value(float32(3)), gpu.Value(uint32(200))))
		require.NoError(t, s.Synchronize())
		require.NoError(t, y.Get(h))
		require.Equal(t, want, h)

		// Part of it, by its address.
		part, err := y.Part(3, 7)
		require.NoError(t, err)
		at, _ := y.Ptr()
		require.NoError(t, saxpy.Launch(s, line, part.Arg(), gpu.Pointer(at), gpu.Value(float32(0)), gpu.Value(int32(4))))
		require.NoError(t, s.Synchronize())
		require.NoError(t, y.Get(h))
		require.Equal(t, want, h)
	})
}

// Three dimensions, and a parameter of each size.
func TestKernelPlaces(t *testing.T) {
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		m, s := load(t, d), stream(t, d)
		out := alloc[uint64](t, d, 6*8*10)
		how := gpu.Shape{Grid: gpu.Dim{X: 2, Y: 4, Z: 5}, Block: gpu.Dim{X: 3, Y: 2, Z: 2}}
		require.NoError(t, kernel(t, m, "place").Launch(s, how, out.Arg(), gpu.Value(int8(-1)), gpu.Value(uint16(40000)), gpu.Value(float32(.5)), gpu.Value(2.5)))
		require.NoError(t, s.Synchronize())
		got := make([]uint64, 6*8*10)
		require.NoError(t, out.Get(got))
		for i, v := range got {
			x, y, z := i%6, i/6%8, i/48
			require.Equal(t, uint64(x+100*y+10000*z+1000000*40002), v)
		}
	})
}

// A graph holds the arguments, and each launch of it runs the kernel again.
func TestKernelInGraph(t *testing.T) {
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		m, s := load(t, d), stream(t, d)
		x, y := alloc[float32](t, d, 64), alloc[float32](t, d, 64)
		one := make([]float32, 64)
		for i := range one {
			one[i] = 1
		}
		require.NoError(t, x.Put(one))
		require.NoError(t, y.Put(make([]float32, 64)))
		require.NoError(t, s.BeginCapture())
		require.NoError(t, kernel(t, m, "saxpy").Launch(s, line, y.Arg(), x.Arg(), gpu.Value(float32(2)), gpu.Value(uint32(64))))
		g, err := s.EndCapture()
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, g.Launch(s))
		}
		require.NoError(t, s.Synchronize())
		require.NoError(t, y.Get(one))
		require.Equal(t, float32(6), one[63])
		require.NoError(t, g.Close())
	})
}

func TestLaunchErrors(t *testing.T) {
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		m, s := load(t, d), stream(t, d)
		saxpy := kernel(t, m, "saxpy")
		x, freed := alloc[float32](t, d, 256), alloc[float32](t, d, 256)
		require.NoError(t, freed.Free())
		a, n := gpu.Value(float32(0)), gpu.Value(uint32(0))
		launch := func(args ...gpu.Arg) error { return saxpy.Launch(s, line, args...) }
		shape := func(h gpu.Shape) error { return saxpy.Launch(s, h, x.Arg(), x.Arg(), a, n) }
		closed, err := d.NewStream()
		require.NoError(t, err)
		require.NoError(t, closed.Close())
		for _, tc := range []struct {
			name string
			err  error
			want string
		}{
			{"freed memory", launch(freed.Arg(), x.Arg(), a, n), "cuda: kernel saxpy: argument 0: cuda: device 0: 1024 bytes of device memory, made at "},
			{"no memory", launch((*gputest.Mem[int8])(nil).Arg(), x.Arg(), a, n), "cuda: kernel saxpy: argument 0: the memory, stream, event or graph is nil"},
			{"the zero Arg", launch(x.Arg(), gpu.Arg{}, a, n), "cuda: kernel saxpy: argument 1 is the zero Arg: Value, Pointer and Mem.Arg make one"},
			{"no blocks", shape(gpu.Shape{Block: gpu.Dim{X: 1}}), "cuda: kernel saxpy: a grid of 0x1x1 blocks of 1x1x1 threads with 0 bytes of shared memory: a grid has 1 to 2147483647 blocks in X"},
			{"no threads", shape(gpu.Shape{Grid: gpu.Dim{X: 1}}), "a grid of 1x1x1 blocks of 0x1x1 threads"},
			{"many threads", shape(gpu.Shape{Grid: gpu.Dim{X: 1}, Block: gpu.Dim{X: 32, Y: 32, Z: 2}}), "a block has 1 to 1024 threads in all"},
			{"negative", shape(gpu.Shape{Grid: gpu.Dim{X: 1, Y: -1}, Block: gpu.Dim{X: 1}}), "a grid of 1x1x1 blocks"},
			{"high", shape(gpu.Shape{Grid: gpu.Dim{X: 1, Y: 65536}, Block: gpu.Dim{X: 1}}), "a grid of 1x65536x1 blocks"},
			{"shared memory", shape(gpu.Shape{Grid: gpu.Dim{X: 1}, Block: gpu.Dim{X: 1}, Shared: -1}), "with -1 bytes of shared memory"},
			{"what the device refuses", shape(gpu.Shape{Grid: gpu.Dim{X: 1}, Block: gpu.Dim{X: 1}, Shared: 1 << 30}), "cuda: device 0: cuLaunchKernel: kernel saxpy: invalid argument ("},
			{"a closed stream", saxpy.Launch(closed, line, x.Arg(), x.Arg(), a, n), "stream"},
			{"no stream", saxpy.Launch(nil, line), "is nil or a zero value"},
			{"no kernel", (*gpu.Kernel)(nil).Launch(s, line), "is nil or a zero value"},
			{"too many", launch(make([]gpu.Arg, 65)...), "cuda: kernel saxpy: 65 arguments"},
		} {
			require.ErrorContains(t, tc.err, tc.want, tc.name)
		}
		if version, _, err := gputest.CUDA.Versions(); err == nil && version >= 12040 { // the driver tells what the parameters are
			require.EqualError(t, launch(x.Arg(), x.Arg(), a), "cuda: kernel saxpy: 3 arguments, and it has 4 parameters")
			require.EqualError(t, launch(x.Arg(), x.Arg(), a, n, n), "cuda: kernel saxpy: 5 arguments, and it has 4 parameters")
			require.EqualError(t, launch(x.Arg(), x.Arg(), gpu.Value(2.), n), "cuda: kernel saxpy: argument 2 has 8 bytes, and the parameter 4")
		}
		require.NoError(t, m.Close())
		require.ErrorIs(t, launch(x.Arg(), x.Arg(), a, n), gpu.ErrClosed)
		_, err = m.Kernel("saxpy")
		require.ErrorIs(t, err, gpu.ErrClosed)
		require.ErrorIs(t, m.Close(), gpu.ErrClosed)
		require.Error(t, (*gpu.Module)(nil).Close())
	})
}

func TestLoadErrors(t *testing.T) {
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		text := image(t)
		m := load(t, d)
		for _, name := range []string{"", "no_such_kernel", "sax\x00py", "saxp"} {
			_, err := m.Kernel(name)
			require.ErrorContains(t, err, "cuda", name)
		}
		_, err := m.Kernel("no_such_kernel")
		require.ErrorContains(t, err, `cuda: device 0: cuModuleGetFunction: kernel "no_such_kernel": named symbol not found (`)
		for _, tc := range []struct{ name, image, want string }{
			{"empty", "", "cuda: cuda:0: Load of an empty image"},
			{"no image", "ELF it is not", "cuda: device 0: cuModuleLoadDataEx: an image of 13 bytes"},
			{"newer", strings.Replace(text, ".version 6.0", ".version 99.0", 1), ", 222)"},
			{"another machine", strings.Replace(text, ".target sm_70", ".target sm_999", 1), "cuda: device 0: cuModuleLoadDataEx: an image of "},
		} {
			_, err := gpu.Load(d, []byte(tc.image))
			require.ErrorContains(t, err, tc.want, tc.name)
		}
		broken := strings.Replace(text, "\n\tret;", "\n\tFAKE_SYNTAX_ERROR;\n\tret;", 1)
		require.NotEqual(t, text, broken)
		_, err = gpu.Load(d, []byte(broken))
		require.ErrorContains(t, err, ", 218)")
		require.ErrorContains(t, err, "FAKE_SYNTAX_ERROR", "what the compiler says")
	})
}

func TestModuleFailures(t *testing.T) {
	gputest.Fake(t, "calls do not fail on demand")
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		// A thread of CUDA 11 has no context before its first call of the runtime: then the call is made again.
		for _, call := range []string{"cuModuleLoadDataEx", "cuModuleGetFunction", "cuLaunchKernel", "cuModuleUnload"} {
			t.Setenv("FAKE_FAIL", call+":1:201")
			m, s := load(t, d), stream(t, d)
			x := alloc[float32](t, d, 1)
			require.NoError(t, kernel(t, m, "saxpy").Launch(s, line, x.Arg(), x.Arg(), gpu.Value(float32(1)), gpu.Value(uint32(1))), call)
			require.NoError(t, s.Synchronize())
			require.NoError(t, m.Close(), call)
		}
		t.Setenv("FAKE_FAIL", "cuModuleUnload:1:700")
		m := load(t, d)
		require.EqualError(t, m.Close(), "cuda: device 0: cudaModuleUnload: an illegal memory access was encountered (cudaErrorIllegalAddress, 700)")
		t.Setenv("FAKE_FAIL", "cuLaunchKernel:1:700")
		m = load(t, d)
		s := stream(t, d)
		x := alloc[float32](t, d, 1)
		require.EqualError(t, kernel(t, m, "saxpy").Launch(s, line, x.Arg(), x.Arg(), gpu.Value(float32(1)), gpu.Value(uint32(1))),
			"cuda: device 0: cuLaunchKernel: kernel saxpy: an illegal memory access was encountered (cudaErrorIllegalAddress, 700)")
	})
}

func TestKernelOfAnotherDevice(t *testing.T) {
	gputest.Fake(t, "one device does not do")
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		other, err := gpu.At[gpu.CUDA](1)
		require.NoError(t, err)
		x := alloc[float32](t, d, 1)
		err = kernel(t, load(t, d), "saxpy").Launch(stream(t, other), line, x.Arg(), x.Arg(), gpu.Value(float32(1)), gpu.Value(uint32(1)))
		require.EqualError(t, err, "cuda: kernel saxpy is of cuda:0, and the stream of cuda:1")
	})
}

func TestLaunchAllocatesNothing(t *testing.T) {
	onCUDA(t, func(t *testing.T, d gpu.Device[gpu.CUDA]) {
		m, s := load(t, d), stream(t, d)
		saxpy, x := kernel(t, m, "saxpy"), alloc[float32](t, d, 1)
		var err error
		n := testing.AllocsPerRun(100, func() {
			err = saxpy.Launch(s, line, x.Arg(), x.Arg(), gpu.Value(float32(1)), gpu.Value(uint32(1)))
		})
		require.NoError(t, err)
		require.Zero(t, n)
		require.NoError(t, s.Synchronize())
	})
}

// A kernel that uses freed memory breaks the device for good, and the next call that waits says so.
func TestKernelOnFreedMemory(t *testing.T) {
	require.Equal(t, []string{"launch: <nil>",
		"synchronize: cuda: device 0: cudaStreamSynchronize: an illegal memory access was encountered (cudaErrorIllegalAddress, 700)"}, probeIn(t, "GPU_TEST_PROBE=kernel"))
}

// probeKernel is what TestKernelOnFreedMemory runs in a process of its own.
func probeKernel() {
	text, err := os.ReadFile("testdata/kernels.ptx")
	d, e1 := gpu.At[gpu.CUDA](0)
	m, e2 := gpu.Load(d, text)
	if err = errors.Join(err, e1, e2); err != nil {
		fmt.Println(err)
		return
	}
	k, _ := m.Kernel("saxpy")
	s, _ := d.NewStream()
	x, _ := gpu.Alloc[float32](d, 1)
	at, _ := x.Ptr()
	x.Free()
	fmt.Println("launch:", k.Launch(s, line, gpu.Pointer(at), gpu.Pointer(at), gpu.Value(float32(1)), gpu.Value(uint32(1))))
	fmt.Println("synchronize:", s.Synchronize())
}
