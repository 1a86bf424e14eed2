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

// Bcast copies the root's slice to all ranks.
func ExampleBcast() {
	initOnce()
	x := []float32{1, 2, 3}
	if err := mpi.Bcast(context.Background(), mpi.World(), x, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x)
	// Output: [1 2 3]
}

// Reduce leaves the reduction on the root alone.
func ExampleReduce() {
	initOnce()
	world := mpi.World()
	dst := make([]int64, 2)
	if err := mpi.Reduce(context.Background(), world, dst, []int64{2, 3}, mpi.Prod, 0); err != nil {
		log.Fatal(err)
	}
	if world.Rank() == 0 {
		fmt.Println(dst)
	}
	// Output: [2 3]
}

// AllReduce works in place if dst and src are one slice.
func ExampleAllReduce() {
	initOnce()
	x := []float64{0.5, 1.5}
	if err := mpi.AllReduce(context.Background(), mpi.World(), x, x, mpi.Sum); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x)
	// Output: [0.5 1.5]
}

// AllGather collects a block of each rank on all ranks.
func ExampleAllGather() {
	initOnce()
	world := mpi.World()
	dst := make([]int32, 2*world.Size())
	if err := mpi.AllGather(context.Background(), world, dst, []int32{7, 8}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(dst)
	// Output: [7 8]
}

// Gather collects a block of each rank on the root.
func ExampleGather() {
	initOnce()
	world := mpi.World()
	dst := make([]uint8, 3*world.Size())
	if err := mpi.Gather(context.Background(), world, dst, []uint8("abc"), 0); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", dst)
	// Output: abc
}

// GatherV collects blocks of any lengths, which all ranks know.
func ExampleGatherV() {
	initOnce()
	world := mpi.World()
	counts := make([]int, world.Size())
	for r := range counts {
		counts[r] = r + 1
	}
	var all []int16
	if world.Rank() == 0 {
		all = make([]int16, world.Size()*(world.Size()+1)/2)
	}
	mine := make([]int16, world.Rank()+1)
	mine[0] = 9
	if err := mpi.GatherV(context.Background(), world, all, counts, mine, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(all)
	// Output: [9]
}

// ScatterV deals out blocks of any lengths.
func ExampleScatterV() {
	initOnce()
	world := mpi.World()
	counts, whole := make([]int, world.Size()), []float32{1, 2, 3}
	counts[0] = len(whole) // all of it is for rank 0
	part := make([]float32, counts[world.Rank()])
	if err := mpi.ScatterV(context.Background(), world, part, whole, counts, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(part)
	// Output: [1 2 3]
}

// ReduceScatterV leaves each rank with a block of the reduction, of any length.
func ExampleReduceScatterV() {
	initOnce()
	world := mpi.World()
	counts := make([]int, world.Size())
	counts[0] = 2
	block := make([]int32, counts[world.Rank()])
	if err := mpi.ReduceScatterV(context.Background(), world, block, []int32{4, 5}, counts, mpi.Min); err != nil {
		log.Fatal(err)
	}
	fmt.Println(block)
	// Output: [4 5]
}

// AllToAll sends block r of each rank to rank r.
func ExampleAllToAll() {
	initOnce()
	world := mpi.World()
	src, dst := make([]int64, world.Size()), make([]int64, world.Size())
	for r := range src {
		src[r] = int64(10*world.Rank() + r)
	}
	if err := mpi.AllToAll(context.Background(), world, dst, src); err != nil {
		log.Fatal(err)
	}
	fmt.Println(dst)
	// Output: [0]
}

// AllToAllV sends blocks of any lengths: sc says how many elements go to each rank, dc how many come.
func ExampleAllToAllV() {
	initOnce()
	world := mpi.World()
	sc, dc := make([]int, world.Size()), make([]int, world.Size())
	sc[world.Rank()], dc[world.Rank()] = 2, 2 // each keeps what it has
	dst := make([]float64, 2)
	if err := mpi.AllToAllV(context.Background(), world, dst, dc, []float64{1, 2}, sc); err != nil {
		log.Fatal(err)
	}
	fmt.Println(dst)
	// Output: [1 2]
}

// Barrier returns when all ranks have called it.
func ExampleBarrier() {
	initOnce()
	fmt.Println(mpi.Barrier(context.Background(), mpi.World()))
	// Output: <nil>
}

// Send and Recv pair by rank and tag. A job of one rank has nobody to send to, which is an error here.
func ExampleSend() {
	initOnce()
	ctx, world := context.Background(), mpi.World()
	x := []uint8("hello")
	switch {
	case world.Size() == 1:
		fmt.Println(errors.Is(mpi.Send(ctx, world, x, 1, 4), mpi.ErrRank))
	case world.Rank() == 0:
		if err := mpi.Send(ctx, world, x, 1, 4); err != nil {
			log.Fatal(err)
		}
	case world.Rank() == 1:
		if _, err := mpi.Recv(ctx, world, x, 0, 4); err != nil {
			log.Fatal(err)
		}
	}
	// Output: true
}

// Test asks whether a call is over, without waiting, for a program that has other things to do.
func ExampleRequest_Test() {
	initOnce()
	r, err := mpi.Ibarrier(mpi.World())
	if err != nil {
		log.Fatal(err)
	}
	for done := false; !done; {
		if done, _, err = r.Test(); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("all are here")
	// Output: all are here
}

// Ibcast and its like are over when Wait returns; the slices must be left alone until then.
func ExampleIbcast() {
	initOnce()
	x := []int32{4, 5}
	r, err := mpi.Ibcast(mpi.World(), x, 0)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := r.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	fmt.Println(x)
	// Output: [4 5]
}

// A duplicate has the same ranks, and its messages never meet those of the original.
func ExampleComm_Dup() {
	initOnce()
	dup, err := mpi.World().Dup()
	if err != nil {
		log.Fatal(err)
	}
	defer dup.Free()
	fmt.Println(dup.Size() == mpi.World().Size())
	// Output: true
}

// AllGather of a Comm makes it a ccl.Bootstrap.
func ExampleComm_AllGather() {
	initOnce()
	all, err := mpi.World().AllGather(context.Background(), []byte("rank 0"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", all)
	// Output: [rank 0]
}

// Self has this rank alone.
func ExampleSelf() {
	initOnce()
	fmt.Println(mpi.Self().Rank(), mpi.Self().Size())
	// Output: 0 1
}

// Types and operators print as they are called in Go.
func ExampleTypeOf() {
	t := mpi.TypeOf[mpi.BFloat16]()
	fmt.Println(t, t.Size(), mpi.Max)
	// Output: bfloat16 2 max
}

// A Class tells what kind of error a call has returned, whatever the library.
func ExampleClass() {
	initOnce()
	err := mpi.AllGather(context.Background(), mpi.World(), make([]int32, 5), make([]int32, 2))
	fmt.Println(errors.Is(err, mpi.ErrCount))
	// Output: true
}
