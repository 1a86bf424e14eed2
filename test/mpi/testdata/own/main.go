// Command own is a program that calls MPI by itself, in C, and goccl in between: MPI, World and Self are its own,
// with their error handlers, before and after. It is built against an MPI's header and library.
package main

/*
#include <stdio.h>
#include <stdlib.h>
#if STANDARD
#include <mpi_abi.h>
#else
#include <mpi.h>
#endif

static int errors;
static MPI_Errhandler mine;
static void count(MPI_Comm *comm, int *code, ...) { errors++; }

static int begin(int level) {
	const int levels[] = {MPI_THREAD_SINGLE, MPI_THREAD_SERIALIZED, MPI_THREAD_MULTIPLE};
	int got;
	return MPI_Init_thread(NULL, NULL, levels[level], &got) || MPI_Comm_create_errhandler(count, &mine) ||
		MPI_Comm_set_errhandler(MPI_COMM_WORLD, mine) || MPI_Comm_set_errhandler(MPI_COMM_SELF, mine);
}

static int handlers(void) { // how many of the two are still mine
	MPI_Errhandler a, b;
	if (MPI_Comm_get_errhandler(MPI_COMM_WORLD, &a) || MPI_Comm_get_errhandler(MPI_COMM_SELF, &b)) return -1;
	return (a == mine) + (b == mine);
}

static int usable(void) {
	int over = 1;
	return !MPI_Finalized(&over) && !over && !MPI_Barrier(MPI_COMM_WORLD);
}

static int caught(void) { // an error on World goes to mine
	int before = errors;
	MPI_Comm_call_errhandler(MPI_COMM_WORLD, MPI_ERR_OTHER);
	return errors - before;
}

static int finish(void) { return MPI_Finalize(); }
*/
import "C"

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/mpi"
)

func must(ok bool, what string, why ...any) {
	if !ok {
		fmt.Println("own:", what, why)
		os.Exit(1)
	}
}

func main() {
	level := slices.Index([]string{"single", "serialized", "multiple"}, os.Getenv("GOCCL_MPI_TEST_LEVEL"))
	must(C.begin(C.int(level)) == 0, "MPI_Init_thread failed")
	ctx := context.Background()
	for range 2 { // what was left alone can be used again
		err := once(ctx)
		must((err == nil) == (level > 0), "goccl:", err)
		must(C.usable() == 1, "MPI cannot be used any longer")
	}
	if level > 0 {
		must(mpi.Finalize() == nil, "mpi.Finalize failed")
	}
	must(C.usable() == 1, "mpi.Finalize has finalised it")
	n := C.handlers()
	must(n == 2, "error handlers that are still the program's:", n)
	must(C.caught() == 1, "the program's error handler was not called")
	must(C.finish() == 0, "MPI_Finalize failed")
	fmt.Println("MPI was left alone")
	C.exit(0) // and what the library does there
}

// once joins, makes a call and closes.
func once(ctx context.Context) error {
	c, err := ccl.Join(ctx, &ccl.Options{Backend: "mpi"})
	if err != nil {
		return err
	}
	x := []float32{1}
	if err := ccl.AllReduce(ctx, c, x, x, ccl.Sum); err != nil {
		return err
	}
	must(int(x[0]) == c.Size(), "a wrong sum:", x[0])
	return c.Close()
}
