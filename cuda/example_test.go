//go:build !nccl || !cgo

package cuda_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/goccl/goccl/cuda"
)

// A program that takes the device if there is one.
func Example() {
	if err := cuda.Available(); err != nil {
		fmt.Println("on the CPU") // err says why: no -tags nccl here
		return
	}
	d, err := cuda.At(0)
	if err != nil {
		log.Fatal(err)
	}
	x, err := cuda.Alloc[float32](d, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Free()
	fmt.Println("on", d)
	// Output: on the CPU
}

// A build without -tags nccl has no devices, and says so.
func ExampleUnavailable() {
	_, err := cuda.At(0)
	var u *cuda.Unavailable
	fmt.Println(errors.As(err, &u))
	// Output: true
}
