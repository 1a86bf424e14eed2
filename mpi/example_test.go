//go:build !mpi || !cgo

package mpi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/goccl/goccl/mpi"
)

// initOnce is Init in the first example of this process; under no launcher, whatever runs it, the job has one rank.
func initOnce() {
	if mpi.Initialized() {
		return
	}
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PALS_RANKID", "SLURM_STEP_ID"} {
		os.Unsetenv(name)
	}
	if err := mpi.Init(); err != nil {
		log.Fatal(err)
	}
}

// A program of as many ranks as its launcher starts: mpiexec -n 4 program. Built without -tags mpi it has one.
func Example() {
	initOnce() // in a program: mpi.Init, and defer mpi.Finalize()
	ctx := context.Background()
	world := mpi.World()
	sum := make([]int32, 1)
	if err := mpi.AllReduce(ctx, world, sum, []int32{int32(world.Rank()) + 1}, mpi.Sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println("of", world.Size(), "rank:", sum[0])
	// Output: of 1 rank: 1
}

// Errors carry a class, as those of MPI do.
func ExampleError() {
	initOnce()
	err := mpi.Bcast(context.Background(), mpi.World(), []float32{1}, 7)
	var e *mpi.Error
	fmt.Println(errors.Is(err, mpi.ErrRoot), errors.As(err, &e))
	// Output: true true
}

// A call that does not wait gives a Request; its memory belongs to MPI until Wait has returned.
func ExampleIallreduce() {
	initOnce()
	dst := make([]float64, 2)
	r, err := mpi.Iallreduce(mpi.World(), dst, []float64{3, 4}, mpi.Max)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := r.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(dst)
	// Output: [3 4]
}

// Ranks of one color get a communicator of their own, ordered by key.
func ExampleComm_Split() {
	initOnce()
	world := mpi.World()
	half, err := world.Split(world.Rank()%2, world.Rank())
	if err != nil {
		log.Fatal(err)
	}
	defer half.Free()
	fmt.Println("rank", half.Rank(), "of", half.Size())
	// Output: rank 0 of 1
}

// AllGatherV joins blocks of any lengths, which all ranks know.
func ExampleAllGatherV() {
	initOnce()
	dst := make([]int64, 3)
	if err := mpi.AllGatherV(context.Background(), mpi.World(), dst, []int{3}, []int64{1, 2, 3}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(dst)
	// Output: [1 2 3]
}

// SendRecv sends and receives in one call, so that ranks that exchange data cannot deadlock. A Status says what came.
func ExampleSendRecv() {
	initOnce()
	world := mpi.World()
	dst := make([]float64, 4) // room for more than comes
	st, err := mpi.SendRecv(context.Background(), world, dst, world.Rank(), []float64{1.5, 2.5}, world.Rank(), 7)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(dst[:st.Count], "with tag", st.Tag)
	// Output: [1.5 2.5] with tag 7
}

// Scan gives each rank the reduction of all ranks up to it.
func ExampleScan() {
	initOnce()
	world := mpi.World()
	upTo := make([]int64, 1)
	if err := mpi.Scan(context.Background(), world, upTo, []int64{int64(world.Rank()) + 1}, mpi.Sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println("up to rank", world.Rank(), "the sum is", upTo[0])
	// Output: up to rank 0 the sum is 1
}

// Scatter deals out the blocks of the root's slice, and Gather collects them.
func ExampleScatter() {
	initOnce()
	ctx, world := context.Background(), mpi.World()
	whole := make([]int32, 2*world.Size())
	for i := range whole {
		whole[i] = int32(i)
	}
	part := make([]int32, 2)
	if err := mpi.Scatter(ctx, world, part, whole, 0); err != nil {
		log.Fatal(err)
	}
	if err := mpi.Gather(ctx, world, whole, part, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(part, whole)
	// Output: [0 1] [0 1]
}

// ReduceScatter leaves each rank with its block of the reduction.
func ExampleReduceScatter() {
	initOnce()
	world := mpi.World()
	src, block := make([]float32, 2*world.Size()), make([]float32, 2)
	src[0] = 3
	if err := mpi.ReduceScatter(context.Background(), world, block, src, mpi.Max); err != nil {
		log.Fatal(err)
	}
	fmt.Println(block)
	// Output: [3 0]
}

// SplitNode makes a communicator of the ranks that share memory, such as those of one host.
func ExampleComm_SplitNode() {
	initOnce()
	node, err := mpi.World().SplitNode(0)
	if err != nil {
		log.Fatal(err)
	}
	defer node.Free()
	fmt.Println("local rank", node.Rank(), "of", node.Size())
	// Output: local rank 0 of 1
}
