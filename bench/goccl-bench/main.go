// Command goccl-bench is bench under a name that says whose it is, for a folder of programs:
//
//	go install github.com/goccl/goccl/bench/goccl-bench@main
//
// It is command bench in every other respect.
package main

import (
	"os"

	"github.com/goccl/goccl/bench/internal/harness"
)

func main() {
	os.Exit(harness.Main(os.Args))
}
