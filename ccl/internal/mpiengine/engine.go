// Package mpiengine is the engine "mpi" of package ccl: host memory through the job's MPI library.
//
// Each Engine has a communicator of its own. Single calls are MPI's blocking functions, which are
// faster than the non-blocking ones; MPI cannot be interrupted inside them. Average, and what ccl
// allows in place beyond MPI, are composed here.
//
// Package mpi writes each function once, over the types of handles, and includes it twice: with int
// handles (MPICH and its kin) and with pointers (Open MPI, and the standard ABI of MPI 5). Three
// tables hold the constants. What a library reduces wrongly it is not asked for: package mpi has
// operators of its own there (own.h). A call that cannot be interrupted ends with its process:
// status 70 (ccl.ExitStuck) and the report.
package mpiengine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/mpi"
)

// Backend is MPI. Opening it loads the library; MPI_Init, which waits for all ranks, is left to New.
func Backend() engine.Backend {
	b := engine.MPI
	b.Open = func() (*engine.Library, error) {
		if err := mpi.Load(); err != nil {
			return nil, err
		}
		// no ID: the ranks know each other by MPI's world
		return &engine.Library{Version: mpi.Version(), Windows: engine.ErrUnsupported, New: join, EndJob: endJob}, nil
	}
	return b
}

// endJob is MPI_Abort.
func endJob(status int) { _ = mpi.World().Abort(status) }

// join makes a communicator of all ranks of MPI's world, in the order of the group. It cannot be
// interrupted while a rank has not come.
func join(_ context.Context, g engine.Group, _ []byte) (engine.Engine, error) {
	done, err := mpi.Use()
	if err != nil {
		return nil, err
	}
	e, err := joinWorld(g)
	if err != nil {
		return nil, errors.Join(err, done(false))
	}
	e.done = done
	return e, nil
}

func joinWorld(g engine.Group) (*Engine, error) {
	world := mpi.World()
	if world.Size() != g.Size {
		return nil, fmt.Errorf("MPI's world has %d ranks, but this Comm has %d: the backend mpi is for the ranks that one mpiexec or srun started, all of them", world.Size(), g.Size)
	}
	comm, err := world.Split(0, g.Rank)
	if err != nil {
		return nil, libraryError(err)
	}
	if comm.Rank() != g.Rank {
		return nil, errors.Join(fmt.Errorf("rank %d of this Comm is rank %d of MPI: two ranks claim the same number",
			g.Rank, comm.Rank()), comm.Free())
	}
	return &Engine{comm: comm}, nil
}

// Engine is one rank's end of a communicator.
type Engine struct {
	engine.Lacking
	comm    *mpi.Comm
	done    func(left bool) error // MPI is used no longer
	aborted atomic.Bool
	failed  atomic.Bool // a call failed inside MPI, which may have left others under way
	call    mpi.Call
	scratch []int64 // of what goes in place beyond MPI
}

// Split is MPI_Comm_split.
func (e *Engine) Split(_ context.Context, g engine.Group) (engine.Engine, error) {
	comm, err := e.comm.Split(g.Color, g.Key)
	if err != nil {
		return nil, libraryError(err)
	}
	if comm == nil {
		return nil, nil
	}
	if comm.Rank() != g.Rank || comm.Size() != g.Size {
		return nil, errors.Join(fmt.Errorf("rank %d of the %d of this Comm is rank %d of %d of MPI", g.Rank, g.Size,
			comm.Rank(), comm.Size()), comm.Free())
	}
	done, err := mpi.Use()
	if err != nil {
		return nil, errors.Join(err, comm.Free())
	}
	return &Engine{comm: comm, done: done}, nil
}

// Supports refuses device memory, and to reduce what MPI has no arithmetic for.
func (e *Engine) Supports(k op.Kind, t op.Type, o op.Op, host bool) error {
	switch {
	case !host:
		return errors.New("MPI takes only host memory here, and this is device memory")
	case k > op.Barrier:
		return fmt.Errorf("MPI has no call of kind %d", k)
	case k.Reduces() && t.Float8():
		return errors.New("MPI does not reduce 8-bit floats")
	case t == op.Complex128:
		return errors.New("the mpi engine has no elements of 16 bytes, which complex128 has")
	case k.Reduces() && (t.Complex() || o.Bitwise() && (t != op.Bool || o == op.BXor)):
		return fmt.Errorf("the mpi engine does not reduce %s by %s", t, o)
	case o.Scales() && k.Reduces():
		return errors.New("MPI has no scaling operator: use sum, then multiply")
	case !o.Valid():
		return fmt.Errorf("MPI has no operator %d", o)
	}
	return nil
}

// Abort makes Close leave what MPI has under way. It cannot end it: MPI has no way to leave a call
// whose peers do not come.
func (e *Engine) Abort() { e.aborted.Store(true) }

// Close frees the communicator, and finalises MPI where this was the last use and ccl had
// initialised it. After Abort, or a failure inside MPI, it does neither: both wait for peers.
func (e *Engine) Close() error {
	if e.aborted.Load() || e.failed.Load() {
		return e.done(true)
	}
	return errors.Join(libraryError(e.comm.Free()), e.done(false))
}

// Native is the MPI_Comm.
func (e *Engine) Native() uintptr { return e.comm.Native() }

// libraryError is err as package ccl knows the errors of libraries.
func libraryError(err error) error {
	var m *mpi.Error
	if !errors.As(err, &m) {
		return err
	}
	return &engine.LibraryError{Library: mpi.Version(), Call: "MPI_" + m.Op, Result: m.Code, Text: m.Text}
}
