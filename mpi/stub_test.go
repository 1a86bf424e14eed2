//go:build !mpi || !cgo

package mpi_test

import (
	"context"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/mpi"
)

// TestStub is a job of one rank without MPI, from its beginning to its end, in a process of its own: a process has one
// such life. Other launchers' variables are taken away: the test may itself run under one.
func TestStub(t *testing.T) {
	if os.Getenv("GOCCL_TEST_STUB") == "" {
		t.Parallel()
		p := exec.Command(os.Args[0], "-test.run", "^TestStub$")
		p.Env = append(os.Environ(), "GOCCL_TEST_STUB=1")
		out, err := p.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	for _, name := range []string{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "PALS_RANKID", "SLURM_STEP_ID"} {
		t.Setenv(name, "")
	}
	ctx, c := context.Background(), mpi.World()
	require.EqualError(t, mpi.Barrier(ctx, c), "mpi: Barrier: MPI is not initialised: call mpi.Init first")
	require.Equal(t, -1, c.Rank())

	t.Setenv("PMI_RANK", "1")
	t.Setenv("PMI_SIZE", "4")
	require.EqualError(t, mpi.Init(), "mpi: Init: a launcher of MPICH's family started this process as one of 4 ranks (PMI_RANK is set), but it was built without MPI: build it with -tags mpi and CGO_ENABLED=1")
	t.Setenv("PMI_RANK", "0")
	t.Setenv("PMI_SIZE", "1")
	require.NoError(t, mpi.Init())
	require.Equal(t, 0, c.Rank())
	require.Equal(t, 1, c.Size())
	require.Contains(t, mpi.LibraryVersion(), "built without the tag mpi")

	dst, src := make([]int32, 3), []int32{1, 2, 3}
	for name, call := range map[string]func() error{
		"AllReduce":      func() error { return mpi.AllReduce(ctx, c, dst, src, mpi.Sum) },
		"Reduce":         func() error { return mpi.Reduce(ctx, c, dst, src, mpi.Max, 0) },
		"Scan":           func() error { return mpi.Scan(ctx, c, dst, src, mpi.Sum) },
		"ReduceScatter":  func() error { return mpi.ReduceScatter(ctx, c, dst, src, mpi.Sum) },
		"ReduceScatterV": func() error { return mpi.ReduceScatterV(ctx, c, dst, src, []int{3}, mpi.Sum) },
		"Gather":         func() error { return mpi.Gather(ctx, c, dst, src, 0) },
		"GatherV":        func() error { return mpi.GatherV(ctx, c, dst, []int{3}, src, 0) },
		"Scatter":        func() error { return mpi.Scatter(ctx, c, dst, src, 0) },
		"ScatterV":       func() error { return mpi.ScatterV(ctx, c, dst, src, []int{3}, 0) },
		"AllGather":      func() error { return mpi.AllGather(ctx, c, dst, src) },
		"AllGatherV":     func() error { return mpi.AllGatherV(ctx, c, dst, []int{3}, src) },
		"AllToAll":       func() error { return mpi.AllToAll(ctx, c, dst, src) },
		"AllToAllV":      func() error { return mpi.AllToAllV(ctx, c, dst, []int{3}, src, []int{3}) },
		"SendRecv":       func() error { _, err := mpi.SendRecv(ctx, c, dst, 0, src, 0, 5); return err },
	} {
		clear(dst)
		require.NoError(t, call(), name)
		require.Equal(t, src, dst, name)
	}
	require.NoError(t, mpi.Barrier(ctx, c))
	require.NoError(t, mpi.Bcast(ctx, c, dst, 0))
	require.ErrorIs(t, mpi.Bcast(ctx, c, dst, 1), mpi.ErrRoot)
	require.ErrorIs(t, mpi.Send(ctx, c, src, 0, 0), mpi.ErrRank)
	r, err := mpi.Iallreduce(c, dst, src, mpi.Sum)
	require.NoError(t, err)
	_, err = r.Wait(ctx)
	require.NoError(t, err)

	half, err := c.Split(0, 0)
	require.NoError(t, err)
	require.Equal(t, 1, half.Size())
	require.NoError(t, half.Free())
	none, err := c.Split(-1, 0)
	require.NoError(t, err)
	require.Nil(t, none)
	all, err := c.AllGather(ctx, []byte("me"))
	require.NoError(t, err)
	require.Equal(t, [][]byte{[]byte("me")}, all)

	require.NoError(t, mpi.Finalize())
	require.EqualError(t, mpi.Barrier(ctx, c), "mpi: Barrier: MPI was finalised")
	require.EqualError(t, mpi.Finalize(), "mpi: Finalize: MPI was finalised already")
}
