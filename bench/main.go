// Command bench measures collectives, and checks their results, wherever Go runs:
//
//	go run github.com/goccl/goccl/bench@latest -op allreduce
//	go install github.com/goccl/goccl/bench/goccl-bench@main    the same, by a name of its own
//
// It starts its own ranks on this machine, or joins the job of the launcher that
// started it. Flags and output are those of nccl-tests. bench -h has the flags. By a link
// that is called all_reduce_perf, or as another of nccl-tests' programs, it is that program.
package main

import (
	"os"

	"github.com/goccl/goccl/bench/internal/harness"
)

func main() {
	os.Exit(harness.Main(os.Args))
}
