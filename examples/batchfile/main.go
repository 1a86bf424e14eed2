// Command batchfile has each rank read its own batches from one file, by MPI-IO. The ranks write
// the file together first. At the end they say which rank was slowest.
//
//	go build -tags mpi -o /tmp/batchfile ./examples/batchfile
//	mpiexec -n 4 /tmp/batchfile -file /scratch/batches
//
// With -compare they read it in three more ways, in turns: every rank for itself by MPI-IO and by
// package os, and one rank for all of a host by package os (data.Readers). Rank 0 prints the median
// time of each, and the least and the most.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"time"

	"github.com/goccl/goccl/mpi"
	"github.com/goccl/goccl/train/data"
)

// job is what the flags say.
type job struct {
	file            string
	batches, floats int
	compare         bool
	rounds          int
}

func main() {
	var j job
	flag.StringVar(&j.file, "file", "batches.bin", "the file, which is written anew")
	flag.IntVar(&j.batches, "batches", 64, "batches in the file")
	flag.IntVar(&j.floats, "floats", 1<<16, "float32 numbers in a batch")
	flag.BoolVar(&j.compare, "compare", false, "also read it in other ways, in turns, and print times")
	flag.IntVar(&j.rounds, "rounds", 5, "with -compare: how often in each way")
	flag.Parse()
	if j.batches < 1 || j.floats < 1 || j.rounds < 1 {
		log.Fatal("-batches, -floats and -rounds are at least 1")
	}
	if err := j.run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func (j job) run(ctx context.Context, out io.Writer) (err error) {
	done, err := mpi.Use()
	if err != nil {
		return err
	}
	defer func() {
		if e := done(err != nil); err == nil {
			err = e
		}
	}()
	world := mpi.World()
	if err := j.write(ctx, world); err != nil {
		return err
	}
	f, err := mpi.OpenFile(ctx, world, j.file, mpi.ReadOnly)
	if err != nil {
		return err
	}
	began := time.Now()
	read, err := j.each(world, func(buf []float32, at int64) error {
		_, err := mpi.ReadAtAll(ctx, f, buf, at)
		return err
	})
	if err != nil {
		return err
	}
	slowest := []mpi.Loc[float64]{{Value: time.Since(began).Seconds(), Index: world.Rank()}}
	if err := mpi.MaxLoc(ctx, world, slowest, slowest); err != nil {
		return err
	}
	all := []int{read}
	if err := mpi.AllReduce(ctx, world, all, all, mpi.Sum); err != nil {
		return err
	}
	if world.Rank() == 0 {
		fmt.Fprintf(out, "%d ranks have read %d batches\n", world.Size(), all[0])
		fmt.Fprintf(out, "rank %d was slowest: %.4f s\n", slowest[0].Index, slowest[0].Value)
	}
	if j.compare {
		err = j.sideBySide(ctx, world, f, out)
	}
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// first is the number that a batch begins with; the others count on from it.
func first(batch int) float32 { return float32(batch % 1000) }

// offset is where a batch begins in the file.
func (j job) offset(batch int) int64 { return int64(batch) * int64(j.floats) * 4 }

// write has all ranks write their batches.
func (j job) write(ctx context.Context, c *mpi.Comm) error {
	f, err := mpi.OpenFile(ctx, c, j.file, mpi.WriteOnly|mpi.Create, mpi.StripingUnit(4*j.floats))
	if err != nil {
		return err
	}
	if err := f.SetSize(ctx, 0); err != nil { // a file that is there keeps its length otherwise
		return err
	}
	buf := make([]float32, j.floats)
	for step := 0; step < j.batches; step += c.Size() {
		batch, part := step+c.Rank(), buf
		if batch >= j.batches {
			part = nil // the call is collective: a rank without a batch makes it too
		}
		for i := range part {
			part[i] = first(batch) + float32(i)
		}
		if _, err := mpi.WriteAtAll(ctx, f, part, j.offset(batch)); err != nil {
			return err
		}
	}
	if err := f.Sync(ctx); err != nil {
		return err
	}
	return f.Close()
}

// each reads this rank's batches of an epoch in random order, checks them, and says how many there
// were. The sampler gives all ranks as many, so the calls of read may be collective.
func (j job) each(c *mpi.Comm, read func(buf []float32, at int64) error) (n int, err error) {
	s := data.Sampler{N: j.batches, Rank: c.Rank(), Size: c.Size(), Seed: 1}
	epoch, err := s.Epoch(0, 0)
	if err != nil {
		return 0, err
	}
	buf := make([]float32, j.floats)
	for _, batch := range epoch {
		if err := read(buf, j.offset(batch)); err != nil {
			return n, err
		}
		if err := check(buf, batch); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func check(buf []float32, batch int) error {
	for i, x := range buf {
		if x != first(batch)+float32(i) {
			return fmt.Errorf("number %d of batch %d is %v", i, batch, x)
		}
	}
	return nil
}
