// Package main is a C library written in Go, with MPI.
package main

import "C"

import (
	"fmt"

	"github.com/goccl/goccl/mpi"
)

//export job
func job() C.int {
	if err := mpi.Init(); err != nil {
		fmt.Println(err)
		return 1
	}
	if err := mpi.Finalize(); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func main() {}
