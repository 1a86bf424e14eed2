//go:build mpi

package ccl

import (
	"context"
	"errors"
	"os"
	"slices"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/mpi"
)

func init() {
	launchers = append(launchers, overMPI)
	shareMPI = keepMPI
}

// keepMPI keeps MPI initialised for oneCCL where that moves data over it, see transport.go: what it
// finds initialised it does not finalise (is_external_init). Join would finalise MPI behind it.
func keepMPI() (func(left bool) error, error) {
	switch {
	case !overMPITransport():
		return nil, nil
	case mpi.Finalized():
		return nil, errors.New("oneCCL is to use MPI (CCL_ATL_TRANSPORT=mpi), which was finalised with the last Comm that used it: keep one open, or call mpi.Init first")
	case !mpi.Initialized():
		return nil, initialisesMPI(os.Getenv)
	}
	return mpi.Use()
}

// overMPI is MPI's world as the bootstrap, where a launcher with MPI started this process: MPICH's
// family and Open MPI, PALS, and srun where it offers PMIx. GOCCL_MPI_LIB=none keeps MPI out of it.
func overMPI(ctx context.Context) (b Bootstrap, known bool, err error) {
	if environ.MPILib.Get() == "none" || mpi.Finalized() { // by an earlier Join: what boot.Env can do is left
		return nil, false, nil
	}
	l, err := boot.Detect(os.Getenv)
	if err != nil {
		return nil, false, nil // boot.Env says it
	}
	switch l.Launcher {
	case "openmpi", "pmi", "pals":
	case "slurm":
		if os.Getenv("PMIX_RANK") == "" {
			return nil, false, nil
		}
	default:
		return nil, false, nil
	}
	w := &mpiWorld{Comm: mpi.World()}
	if w.done, err = mpi.Use(); err != nil {
		return nil, true, err
	}
	if err := w.agree(ctx); err != nil {
		w.Close()
		return nil, true, err
	}
	return w, true, nil
}

// mpiWorld is MPI's world until Close.
type mpiWorld struct {
	*mpi.Comm
	secret []byte
	done   func(left bool) error
}

// agree settles on the job's secret: the one each rank was given, else one that rank 0 makes.
// It goes to all ranks only where somebody has none.
func (w *mpiWorld) agree(ctx context.Context) error {
	given, err := auth.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	all, err := w.AllGather(ctx, []byte{bit[byte](given != nil)})
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(all, func(has []byte) bool { return has[0] == 0 }) {
		w.secret = given
		return nil
	}
	var made []byte
	if w.Rank() == 0 {
		made = auth.NewSecret()
	}
	if all, err = w.AllGather(ctx, made); err != nil {
		return err
	}
	w.secret = all[0]
	return nil
}

// Secret guards the connections for data.
func (w *mpiWorld) Secret() []byte { return w.secret }

// HostID tells hosts apart where the user says how.
func (w *mpiWorld) HostID() string { return environ.HostID.Get() }

// Close finalises MPI, unless something else uses it.
func (w *mpiWorld) Close() error { return w.done(mpi.Abandoned() > 0) }
