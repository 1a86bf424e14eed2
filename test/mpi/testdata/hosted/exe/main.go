// Command exe is a Go program with MPI.
package main

import (
	"fmt"
	"os"

	"github.com/goccl/goccl/mpi"
)

func job() int {
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

func main() { os.Exit(job()) }
