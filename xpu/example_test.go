//go:build !oneccl || !cgo

package xpu_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/goccl/goccl/xpu"
)

// A program that takes the device if there is one.
func Example() {
	if err := xpu.Available(); err != nil {
		fmt.Println("on the CPU") // err says why: no -tags oneccl here
		return
	}
	d, err := xpu.At(0)
	if err != nil {
		log.Fatal(err)
	}
	x, err := xpu.Alloc[float32](d, 1<<20)
	if err != nil {
		log.Fatal(err)
	}
	defer x.Free()
	fmt.Println("on", d)
	// Output: on the CPU
}

// A build without -tags oneccl has no devices, and says so.
func ExampleUnavailable() {
	_, err := xpu.At(0)
	var u *xpu.Unavailable
	fmt.Println(errors.As(err, &u))
	// Output: true
}
