package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/mpi"
	"github.com/goccl/goccl/train/data"
)

// way is a way to read the batches.
type way struct {
	name string
	read func(buf []float32, at int64) error
}

// sideBySide reads the same batches in each way, in turns, so that what else the machine does concerns all of them.
func (j job) sideBySide(ctx context.Context, world *mpi.Comm, f *mpi.File, out io.Writer) error {
	c, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	file, _, err := files.Open(j.file, math.MaxInt64)
	if err != nil {
		return err
	}
	defer file.Close()
	ways := waysOf(ctx, c, f, file)
	times := make([][]float64, len(ways))
	for round := range j.rounds {
		for i := range ways {
			i = (i + round) % len(ways) // each begins a round in its turn
			took, err := j.time(ctx, world, ways[i])
			if err != nil {
				return err
			}
			times[i] = append(times[i], took)
		}
	}
	if world.Rank() == 0 {
		for i, w := range ways {
			slices.Sort(times[i])
			n := len(times[i])
			fmt.Fprintf(out, "%-15s %.4f s (%.4f to %.4f, %d rounds)\n", w.name, (times[i][(n-1)/2]+times[i][n/2])/2,
				times[i][0], times[i][n-1], n)
		}
	}
	return nil
}

func waysOf(ctx context.Context, c *ccl.Comm, f *mpi.File, file *os.File) []way {
	return []way{
		{"mpi.ReadAtAll", func(buf []float32, at int64) error { _, err := mpi.ReadAtAll(ctx, f, buf, at); return err }},
		{"mpi.ReadAt", func(buf []float32, at int64) error { _, err := mpi.ReadAt(ctx, f, buf, at); return err }},
		{"os.File.ReadAt", func(buf []float32, at int64) error { return readFloats(file, buf, at) }},
		{"data.Readers", func(buf []float32, at int64) error {
			// One rank of a host reads for all of it: it must know their offsets.
			offsets := make([]int64, c.Size())
			if err := ccl.AllGather(ctx, c, offsets, []int64{at}); err != nil {
				return err
			}
			part, err := data.Readers(ctx, c, c.Place().Locals, func(rank int) ([]float32, error) {
				part := make([]float32, len(buf))
				return part, readFloats(file, part, offsets[rank])
			})
			copy(buf, part)
			return err
		}},
	}
}

// readFloats is ReadAt of numbers as this machine has them in memory, which is how MPI-IO has them in a file.
func readFloats(r io.ReaderAt, buf []float32, at int64) error {
	return binary.Read(io.NewSectionReader(r, at, int64(4*len(buf))), binary.NativeEndian, buf)
}

// time reads an epoch in a way, and returns the seconds of the slowest rank.
func (j job) time(ctx context.Context, world *mpi.Comm, w way) (float64, error) {
	if err := mpi.Barrier(ctx, world); err != nil {
		return 0, err
	}
	began := time.Now()
	if _, err := j.each(world, w.read); err != nil {
		return 0, fmt.Errorf("%s: %w", w.name, err)
	}
	took := []float64{time.Since(began).Seconds()}
	err := mpi.AllReduce(ctx, world, took, took, mpi.Max)
	return took[0], err
}
