// Package empi lets a communicator of github.com/emer/empi, or of another package with its methods,
// start goccl: ranks that have MPI need nothing else to find each other.
//
//	err := mpi.InitThreadSafe() // and -tags mpi: without it empi is one rank, under any launcher
//	world, err := mpi.NewComm(nil)
//	c, err := ccl.NewComm(ctx, empi.Bootstrap(world), nil)
//	...
//	err = ccl.AllReduce(ctx, c, weights, weights, ccl.Sum)
//
// The module in the directory shim goes further: it takes empi's place, and programs written for
// empi run over goccl as they are.
package empi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// Comm is what a Bootstrap needs of a communicator. *mpi.Comm of github.com/emer/empi has it.
type Comm interface {
	Rank() int
	Size() int
	AllGatherInt(dest, orig []int) error
	AllGatherU8(dest, orig []uint8) error
	Barrier() error
}

// Bootstrap is c as the bootstrap of ccl.NewComm. Only NewComm uses it, and until it returns nothing else may use c.
// MPI's calls cannot be interrupted: if a context ends first, its error is returned, and c is in that call still.
func Bootstrap(c Comm) ccl.Bootstrap { return &bootstrap{c: c} }

type bootstrap struct {
	c     Comm
	stuck atomic.Bool // a call was left behind
}

func (b *bootstrap) Rank() int { return b.c.Rank() }
func (b *bootstrap) Size() int { return b.c.Size() }

var errStuck = errors.New("empi: AllGather: an earlier exchange over this communicator was not waited for, and it can have no other")

// AllGather returns every rank's mine, indexed by rank.
func (b *bootstrap) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.stuck.Load() {
		return nil, errStuck
	}
	var all [][]byte
	done, mine := make(chan error, 1), slices.Clone(mine)
	go func() {
		var err error
		all, err = allGather(b.c, mine)
		done <- err
	}()
	select {
	case err := <-done:
		return all, err
	case <-ctx.Done():
		b.stuck.Store(true)
		return nil, context.Cause(ctx)
	}
}

// allGather has only blocks of one size, so all are as long as the longest.
func allGather(c Comm, mine []byte) ([][]byte, error) {
	if c.Size() == 1 { // perhaps empi without the tag mpi, whose calls do nothing
		return [][]byte{mine}, nil
	}
	lengths := make([]int, c.Size())
	if err := c.AllGatherInt(lengths, []int{len(mine)}); err != nil {
		return nil, fmt.Errorf("empi: AllGather: %w", err)
	}
	if slices.Min(lengths) < 0 || slices.Max(lengths) > boot.MaxValue || lengths[c.Rank()] != len(mine) {
		return nil, fmt.Errorf("empi: AllGather: the lengths of the ranks' blocks came as %v, and rank %d has %d bytes",
			lengths, c.Rank(), len(mine))
	}
	width := max(1, slices.Max(lengths)) // empi panics on an empty slice
	all := make([]byte, width*len(lengths))
	if err := c.AllGatherU8(all, append(mine, make([]byte, width-len(mine))...)); err != nil {
		return nil, fmt.Errorf("empi: AllGather: %w", err)
	}
	// A rank that goes on while its neighbour still waits for MPI could keep it from ever getting there.
	if err := c.Barrier(); err != nil {
		return nil, fmt.Errorf("empi: AllGather: %w", err)
	}
	blocks := make([][]byte, len(lengths))
	for r, n := range lengths {
		blocks[r] = all[r*width : r*width+n : r*width+n]
	}
	return blocks, nil
}
