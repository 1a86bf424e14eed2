//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/gpu"
	"github.com/goccl/goccl/internal/gpu/gputest"
)

// Every call's failure arrives as an Error with the library's code, name and text.
func TestErrors(t *testing.T) {
	gputest.Fake(t, "failures are made by the fake")
	d, err := gputest.CUDA.Device(0)
	require.NoError(t, err)
	s, e, x, h := stream(t, d), event(t, d), alloc[int8](t, d, 1), host[int8](t, d, 1)
	for call, f := range map[string]func() error{
		"GetDeviceCount":         func() error { _, err := gputest.CUDA.Count(); return err },
		"GetDeviceProperties":    func() error { _, err := d.Name(); return err },
		"DeviceGetPCIBusId":      func() error { _, err := d.PCI(); return err },
		"MemGetInfo":             func() error { _, _, err := d.Memory(); return err },
		"DeviceSynchronize":      d.Synchronize,
		"DeviceCanAccessPeer":    func() error { _, err := d.CanAccess(d); return err },
		"DeviceEnablePeerAccess": func() error { return d.EnableAccess(d) },
		"Malloc":                 func() error { _, err := gpu.Alloc[int8](d, 1); return err },
		"MallocManaged":          func() error { _, err := gpu.AllocManaged[int8](d, 1); return err },
		"HostAlloc":              func() error { _, err := gpu.AllocHost[int8](d, 1); return err },
		"Memcpy":                 func() error { return x.Put([]int8{1}) },
		"MemcpyAsync":            func() error { return x.PutOn(s, h) },
		"Memset":                 func() error { return x.Set(0) },
		"MemsetAsync":            func() error { return x.SetOn(s, 0) },
		"StreamCreateWithFlags":  func() error { _, err := d.NewStream(); return err },
		"StreamSynchronize":      s.Synchronize,
		"StreamQuery":            func() error { _, err := s.Query(); return err },
		"StreamWaitEvent":        func() error { return s.WaitEvent(e) },
		"EventCreateWithFlags":   func() error { _, err := d.NewEvent(); return err },
		"EventRecord":            func() error { return e.Record(s) },
		"EventQuery":             func() error { _, err := e.Query(); return err },
		"EventSynchronize":       e.Synchronize,
		"StreamBeginCapture":     s.BeginCapture,
	} {
		t.Run(call, func(t *testing.T) {
			t.Setenv("FAKE_FAIL", "cuda"+call+":1:400")
			err := f()
			var failure *gpu.Error
			require.ErrorAs(t, err, &failure)
			require.Equal(t, "CUDA", failure.Runtime)
			require.Equal(t, "cuda"+call, failure.Call)
			require.Equal(t, 400, failure.Code)
			require.Equal(t, "cudaErrorInvalidResourceHandle", failure.Name)
			require.Equal(t, "invalid resource handle", failure.Text)
		})
	}
	require.EqualError(t, &gpu.Error{Runtime: "HIP", Call: "hipMalloc", Device: 1, Code: 2, Name: "hipErrorOutOfMemory", Text: "out of memory", What: "8 bytes"},
		"rocm: device 1: hipMalloc: 8 bytes: out of memory (hipErrorOutOfMemory, 2)")
}

// What fails on the device, after the call that issued it, is in every later answer.
func TestDeviceFails(t *testing.T) {
	require.Equal(t, []string{
		"first: <nil>",
		"synchronize: cuda: device 0: cudaStreamSynchronize: an illegal memory access was encountered (cudaErrorIllegalAddress, 700)",
		"query: cuda: device 0: cudaStreamQuery: an illegal memory access was encountered (cudaErrorIllegalAddress, 700)",
		"event: cuda: device 0: cudaEventQuery: an illegal memory access was encountered (cudaErrorIllegalAddress, 700)",
	}, probeIn(t, "GPU_TEST_PROBE=failure", "FAKE_FAIL=stream:2:700"))
}

// probeFailure is what TestDeviceFails runs in a process of its own, whose devices do not recover.
func probeFailure() {
	d, err := gputest.CUDA.Device(0)
	if err != nil {
		fmt.Println(err)
		return
	}
	s, _ := d.NewStream()
	e, _ := d.NewMark()
	x, _ := gpu.Alloc[int8](d, 1)
	x.SetOn(s, 0)
	fmt.Println("first:", s.Synchronize())
	x.SetOn(s, 0)
	fmt.Println("synchronize:", s.Synchronize())
	_, err = s.Query()
	fmt.Println("query:", err)
	e.Record(s)
	_, err = e.Query()
	fmt.Println("event:", err)
}
