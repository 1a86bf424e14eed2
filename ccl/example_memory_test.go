package ccl_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// MakeDevice asks the backend's library for memory that peers and the network reach best. The CPU has none.
func ExampleMakeDevice() {
	ranks(1, func(c *ccl.Comm) error {
		m, err := ccl.MakeDevice[float32](context.Background(), c, 1024)
		if errors.Is(err, ccl.ErrUnsupported) {
			fmt.Println(err)
			return nil
		}
		if err != nil {
			return err
		}
		return ccl.FreeDevice(m)
	})
	// Output: ccl: rank 0: MakeDevice: the backend cpu has no device memory; MakeSlice makes host memory that needs fewer copies
}

// FreeDevice takes only what MakeDevice has made.
func ExampleFreeDevice() {
	err := ccl.FreeDevice[float32](gpuMemory{1024})
	fmt.Println(errors.Is(err, ccl.ErrArgument))
	// Output: true
}

// Register tells the library of memory that many calls will use. A program goes on where nothing is registered.
func ExampleComm_Register() {
	ranks(1, func(c *ccl.Comm) error {
		release, err := c.Register(context.Background(), ccl.BufOfMemory(gpuMemory{1024}))
		if errors.Is(err, ccl.ErrUnsupported) {
			fmt.Println("not registered, and none the worse")
			return nil
		}
		if err != nil {
			return err
		}
		return release()
	})
	// Output: not registered, and none the worse
}

// Window makes memory of MakeDevice reachable for all ranks. All ranks call it, and all get the same error.
func ExampleComm_Window() {
	ranks(1, func(c *ccl.Comm) error {
		release, err := c.Window(context.Background(), ccl.BufOfMemory(gpuMemory{1024}))
		if errors.Is(err, ccl.ErrUnsupported) {
			fmt.Println("no windows on the CPU")
			return nil
		}
		if err != nil {
			return err
		}
		return release()
	})
	// Output: no windows on the CPU
}

// Addr is where a Buf's memory lies, for kernels of the program's own.
func ExampleBuf_Addr() {
	addr, ok := ccl.BufOfMemory(gpuMemory{1024}).From(256, 512).Addr()
	fmt.Printf("%#x %v\n", addr, ok)
	// Output: 0x7f0000000400 true
}

// A Hints prints as ParseHints reads it.
func ExampleHints_String() {
	fmt.Println(ccl.Hints{MaxCTAs: 8, CTAPolicy: ccl.CTAPolicyEfficiency, Net: "Socket"})
	// Output: max-ctas=8,cta-policy=efficiency,net=Socket
}
