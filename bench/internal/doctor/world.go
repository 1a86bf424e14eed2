package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/mpi"
)

// world is what the launcher's MPI says about a rank, in a build with the tag mpi.
type world struct {
	Version string `json:"version,omitempty"`
	Path    string `json:"path,omitempty"`
	Rank    int    `json:"rank"` // of MPI_COMM_WORLD
	Size    int    `json:"size"`
	Error   string `json:"error,omitempty"` // why MPI is of no use here
}

// meet is the bootstrap that a run of bench has. Where that is MPI's world and MPI is of no use, which is a
// finding, it is what the launcher's variables offer.
func meet(ctx context.Context) (b ccl.Bootstrap, w *world, done func(), err error) {
	type met struct {
		b    ccl.Bootstrap
		done func()
		err  error
	}
	c := make(chan met, 1)
	go func() { // MPI_Init cannot be interrupted
		b, done, err := ccl.Launched(ctx)
		c <- met{b, done, err}
	}()
	var m met
	select {
	case m = <-c:
	case <-ctx.Done():
		return nil, nil, nil, fmt.Errorf("the ranks have not met: %w; if one of them has ended, its message says why",
			ctx.Err())
	}
	var failed *mpi.Error
	switch {
	case m.err == nil && mpi.Initialized():
		return m.b, &world{Version: mpi.Version(), Path: mpi.LibraryPath(), Rank: mpi.World().Rank(),
			Size: mpi.World().Size()}, m.done, nil
	case m.err == nil:
		return m.b, nil, m.done, nil
	case !errors.As(m.err, &failed):
		return nil, nil, nil, m.err
	}
	e, err := boot.Env(ctx)
	if err != nil {
		return nil, nil, nil, errors.Join(m.err, err)
	}
	return e, &world{Version: mpi.Version(), Path: mpi.LibraryPath(), Error: failed.Error()}, func() { e.Close() }, nil
}

// worlds compares MPI's world with what the launcher started.
func (e *exam) worlds() {
	told := 0
	for _, f := range e.ranks {
		w := f.MPI
		switch {
		case w == nil:
			continue
		case w.Error != "":
			e.say("mpi", failure, "load the module of the MPI whose launcher this is, or set GOCCL_MPI_LIB to its library; GOCCL_MPI_LIB=none does without MPI",
				"rank %d on %s: %s", f.Rank, f.Host, w.Error)
			return
		case w.Size != len(e.ranks) || w.Rank != f.Rank:
			e.say("mpi", failure, "start the program with the launcher of this MPI, or set GOCCL_MPI_LIB to the library of the launcher's",
				"%s on %s sees rank %d as rank %d of %d, but the launcher started %d", w.Version, f.Host, f.Rank, w.Rank, w.Size,
				len(e.ranks))
			return
		}
		told++
	}
	switch {
	case told == len(e.ranks) && told > 0:
		e.alike("mpi", failure, "all ranks must load the same MPI: load the same modules on all nodes", e.ranks,
			func(f *facts) string {
				return fmt.Sprintf("%s (%s): its world has %d ranks, as many as were started", f.MPI.Version, f.MPI.Path,
					f.MPI.Size)
			})
	case told > 0:
		e.say("mpi", failure, "set GOCCL_MPI_LIB and the launcher's variables alike on all nodes",
			"only %d of %d ranks are in MPI's world", told, len(e.ranks))
	}
}
