//go:build !mpi || !cgo

package mpi_test

import (
	"context"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
	for _, root := range []int{-1, 1, math.MinInt, math.MaxInt} { // in which no slice may be cut
		require.ErrorIs(t, mpi.Gather(ctx, c, dst, src, root), mpi.ErrRoot)
		require.ErrorIs(t, mpi.GatherV(ctx, c, dst, []int{3}, src, root), mpi.ErrRoot)
		require.ErrorIs(t, mpi.Scatter(ctx, c, dst, src, root), mpi.ErrRoot)
		require.ErrorIs(t, mpi.ScatterV(ctx, c, dst, src, []int{3}, root), mpi.ErrRoot)
		_, err := mpi.Igather(c, dst, src, root)
		require.ErrorIs(t, err, mpi.ErrRoot)
		_, err = mpi.Iscatter(c, dst, src, root)
		require.ErrorIs(t, err, mpi.ErrRoot)
	}
	require.ErrorIs(t, mpi.Send(ctx, c, src, 0, 0), mpi.ErrRank)
	r, err := mpi.Iallreduce(c, dst, src, mpi.Sum)
	require.NoError(t, err)
	_, err = r.Wait(ctx)
	require.NoError(t, err)

	at := []mpi.Loc[float64]{{Value: 2.5, Index: 3}}
	require.NoError(t, mpi.MaxLoc(ctx, c, at, at))
	require.Equal(t, mpi.Loc[float64]{Value: 2.5, Index: 3}, at[0])
	require.NoError(t, mpi.Exscan(ctx, c, dst, src, mpi.Sum))
	found, _, err := mpi.Iprobe[int8](c, mpi.ProcNull, 0)
	require.NoError(t, err)
	require.True(t, found)
	_, err = mpi.Probe[int8](ctx, c, 0, 0)
	require.ErrorIs(t, err, mpi.ErrRank)
	stubFile(t, ctx, c)

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

// stubFile is a file of one rank: package os does what MPI would.
func stubFile(t *testing.T, ctx context.Context, c *mpi.Comm) {
	name := filepath.Join(t.TempDir(), "file")
	_, err := mpi.OpenFile(ctx, c, name, mpi.ReadOnly)
	require.ErrorIs(t, err, mpi.ErrNoSuchFile)
	f, err := mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create|mpi.Excl)
	require.NoError(t, err)
	_, err = mpi.OpenFile(ctx, c, name, mpi.ReadWrite|mpi.Create|mpi.Excl)
	require.ErrorIs(t, err, mpi.ErrFileExists)
	n, err := mpi.WriteAtAll(ctx, f, []float32{1, 2, 3}, 4)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.NoError(t, f.Sync(ctx))
	got := make([]float32, 4)
	n, err = mpi.ReadAt(ctx, f, got, 0)
	require.NoError(t, err)
	require.Equal(t, 4, n)
	require.Equal(t, []float32{0, 1, 2, 3}, got)
	require.NoError(t, f.SetSize(ctx, 10))
	n, err = mpi.ReadAtAll(ctx, f, got, 0)
	require.ErrorIs(t, err, io.EOF)
	require.EqualError(t, err, "mpi: ReadAtAll "+name+": the file ends after 2 of 4 elements from byte 0 on")
	require.Equal(t, 2, n)
	size, err := f.Size()
	require.NoError(t, err)
	require.Equal(t, int64(10), size)
	require.ErrorIs(t, mpi.Finalize(), mpi.ErrState)
	require.NoError(t, f.Close())
	for name, call := range map[string]func() error{
		"Close":      f.Close,
		"Sync":       func() error { return f.Sync(ctx) },
		"SetSize":    func() error { return f.SetSize(ctx, 1) },
		"Size":       func() error { _, err := f.Size(); return err },
		"ReadAt":     func() error { _, err := mpi.ReadAt(ctx, f, got, 0); return err },
		"WriteAtAll": func() error { _, err := mpi.WriteAtAll(ctx, f, got, 0); return err },
	} {
		require.ErrorIs(t, call(), fs.ErrClosed, name)
	}
	for _, most := range []int{1 << 30, 100} {
		mpi.SetMost(t, most)
		campaign(t, ctx, filepath.Join(t.TempDir(), "file"), rand.New(rand.NewPCG(41, uint64(most))))
	}
	if _, err := os.Stat("/dev/full"); err == nil { // a disk without room
		full, err := mpi.OpenFile(ctx, c, "/dev/full", mpi.WriteOnly)
		require.NoError(t, err)
		n, err := mpi.WriteAtAll(ctx, full, got, 0)
		require.Zero(t, n)
		require.ErrorIs(t, err, mpi.ErrNoSpace)
		require.NoError(t, full.Close())
	}
	f, err = mpi.OpenFile(ctx, c, name, mpi.ReadOnly|mpi.DeleteOnClose)
	require.NoError(t, err)
	_, err = mpi.WriteAt(ctx, f, got, 0)
	require.ErrorIs(t, err, mpi.ErrReadOnly)
	require.NoError(t, f.Close())
	_, err = os.Stat(name)
	require.ErrorIs(t, err, fs.ErrNotExist)
}
