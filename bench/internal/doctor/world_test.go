package doctor

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// worldly is a healthy job in MPI's world.
func worldly() *exam {
	e := healthy()
	for _, f := range e.ranks {
		f.MPI = &world{Version: "MPICH 5.0.2", Path: "/usr/lib/libmpi.so.12", Rank: f.Rank, Size: len(e.ranks)}
	}
	return e
}

func TestWorlds(t *testing.T) {
	e := healthy()
	e.worlds()
	require.Empty(t, e.found) // no MPI, nothing to say
	e = worldly()
	e.worlds()
	require.Equal(t, []Finding{{"mpi", ok, "MPICH 5.0.2 (/usr/lib/libmpi.so.12): its world has 4 ranks, as many as were started", ""}}, e.found)

	for _, tc := range []struct {
		name  string
		plant func(e *exam)
		text  string
	}{
		{"each rank is alone", func(e *exam) {
			for _, f := range e.ranks {
				f.MPI.Rank, f.MPI.Size = 0, 1
			}
		}, "MPICH 5.0.2 on h1 sees rank 0 as rank 0 of 1, but the launcher started 4"},
		{"another order", func(e *exam) { e.ranks[1].MPI.Rank, e.ranks[2].MPI.Rank = 2, 1 }, "MPICH 5.0.2 on h1 sees rank 1 as rank 2 of 4, but the launcher started 4"},
		{"another version", func(e *exam) { e.ranks[3].MPI.Version = "MPICH 4.0.2" },
			"differs: MPICH 4.0.2 (/usr/lib/libmpi.so.12): its world has 4 ranks, as many as were started on h2; MPICH 5.0.2"},
		{"of no use on a rank", func(e *exam) { e.ranks[2].MPI = &world{Error: "mpi: Init: no"} }, "rank 2 on h2: mpi: Init: no"},
		{"not on all ranks", func(e *exam) { e.ranks[2].MPI = nil }, "only 3 of 4 ranks are in MPI's world"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := worldly()
			tc.plant(e)
			e.worlds()
			require.Len(t, e.found, 1)
			require.Equal(t, failure, e.found[0].Level)
			require.Contains(t, e.found[0].Text, tc.text)
			require.NotEmpty(t, e.found[0].Remedy)
		})
	}
}

// Where no launcher has MPI the ranks meet as they always do.
func TestMeet(t *testing.T) {
	for _, name := range []string{"PMI_RANK", "OMPI_COMM_WORLD_SIZE", "PALS_RANKID", "SLURM_PROCID"} {
		t.Setenv(name, "")
	}
	b, w, done, err := meet(t.Context())
	require.NoError(t, err)
	require.Nil(t, w)
	require.Equal(t, []int{0, 1}, []int{b.Rank(), b.Size()})
	done()

	t.Setenv("GOCCL_RANK", "1")
	t.Setenv("GOCCL_SIZE", "2")
	t.Setenv("GOCCL_ROOT", "127.0.0.1:9")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, _, _, err = meet(ctx)
	require.Error(t, err)
}
