package mpi

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"
)

// Comm is a communicator: an ordered set of ranks.
type Comm struct {
	handle     uintptr // 0: freed, or MPI is not initialised
	rank, size int
	broken     atomic.Pointer[Error] // a call was abandoned
	vote       [2]int32              // of AllToAllV
	hidden     *Comm                 // see private; nil until it is needed
}

var world, self = Comm{rank: -1}, Comm{rank: -1}

// World is the communicator of all ranks of the job. Before Init it is of no use: of rank -1 and size 0.
func World() *Comm { return &world }

// Self is the communicator of this rank alone.
func Self() *Comm { return &self }

// Rank is this rank's place in c, from 0 to Size-1.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks of c.
func (c *Comm) Size() int { return c.size }

// Native is the library's own handle, an MPI_Comm as a number; 0 of a freed communicator.
func (c *Comm) Native() uintptr { return c.handle }

// ready is nil, or why op cannot be called on c.
func (c *Comm) ready(op string) error {
	if process.phase.Load() != running {
		return notRunning(op)
	}
	if c.handle == 0 {
		return failed(op, ErrComm, "the communicator was freed")
	}
	if e := c.broken.Load(); e != nil {
		return &Error{Op: op, Class: e.Class, Text: e.Text, Err: e.Err}
	}
	return nil
}

// Abort ends the job: all processes of c at least, and in practice all; where c was freed, those of World.
// The launcher exits with code where the MPI passes it on. It does not return unless MPI is not initialised.
func (c *Comm) Abort(code int) error {
	if process.phase.Load() != running {
		return notRunning("Abort")
	}
	abort(cmp.Or(c.handle, world.handle), code)
	return failed("Abort", ErrOther, "MPI_Abort returned")
}

// Do makes the call k and waits for it. See Call.
func (c *Comm) Do(ctx context.Context, k *Call) (Status, error) {
	if err := k.check(c.size); err != nil {
		return Status{}, err
	}
	return c.do(ctx, k)
}

// Start is Do without the wait.
func (c *Comm) Start(k *Call) (*Request, error) {
	if err := k.check(c.size); err != nil {
		return nil, err
	}
	r, large, err := c.start(k)
	if large {
		return nil, refused(k.Kind, ErrCount,
			"this library takes no more than %d elements in a non-blocking call; use the blocking one", limit)
	}
	return r, err
}

func (c *Comm) do(ctx context.Context, k *Call) (Status, error) {
	if process.phase.Load() != running || c.handle == 0 || c.broken.Load() != nil {
		return Status{}, c.ready(k.Kind.String())
	}
	if err := ctx.Err(); err != nil {
		return Status{}, notBegun(k, err)
	}
	if k.Kind == KindAllToAllV && !process.large {
		large, err := c.anyLarge(ctx, k)
		if err != nil {
			return Status{}, err
		}
		if large {
			return c.inPieces(ctx, k)
		}
	}
	if ctx.Done() == nil && process.level == Multiple {
		if k.N >= yieldFrom {
			yieldNow(time.Now())
		}
		st, large, err := c.run(k)
		if large {
			return c.inPieces(ctx, k)
		}
		return st, err
	}
	if process.level == Multiple && !k.Kind.message() {
		return c.apart(ctx, k)
	}
	return c.poll(ctx, k)
}

func notBegun(k *Call, err error) error {
	return &Error{Op: k.Kind.String(), Class: ErrAbandoned, Text: "not begun", Err: err}
}
