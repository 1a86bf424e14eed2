//go:build !rccl || !cgo

package rocm_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/goccl/goccl/rocm"
)

// A program that takes the device if there is one.
func Example() {
	if err := rocm.Available(); err != nil {
		fmt.Println("on the CPU") // err says why: no -tags rccl here
		return
	}
	d, err := rocm.At(0)
	if err != nil {
		log.Fatal(err)
	}
	x, err := rocm.Alloc[float32](d, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Free()
	fmt.Println("on", d)
	// Output: on the CPU
}

// A build without -tags rccl has no devices, and says so.
func ExampleUnavailable() {
	_, err := rocm.At(0)
	var u *rocm.Unavailable
	fmt.Println(errors.As(err, &u))
	// Output: true
}
