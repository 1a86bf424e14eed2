package mpi_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/emer/empi/mpi"
	"github.com/goccl/goccl/ccl/boot"
)

func init() {
	scenes["groups"] = joined(func(c *mpi.Comm) error {
		r := c.Rank()
		members := [][]int{{2, 0}, {1}, {2, 0}, nil}[r] // in that order; rank 3 takes all, below
		if members == nil {
			members = []int{1} // and is not among them
		}
		g, err := mpi.NewComm(members)
		if err != nil {
			return err
		}
		x := []int{10 + r}
		if r == 3 {
			return all(same(nil, []int{g.Rank(), g.Size()}, []int{-1, 0}),
				fails(g.AllReduceInt(mpi.OpSum, x, nil), "mpi: AllReduceInt: this process is not among the ranks of the communicator"),
				c.Barrier())
		}
		got := make([]int, g.Size())
		err = g.AllGatherInt(got, x)
		want := [][]int{{12, 10}, {11}, {12, 10}}[r]
		return all(same(err, got, want), same(nil, g.Rank(), [...]int{1, 0, 0}[r]), c.Barrier())
	})
	scenes["misuse"] = func() error {
		_, before := mpi.NewComm(nil)
		var none *mpi.Comm
		if err := all(fails(before, "mpi: NewComm: called before Init"),
			fails(none.Barrier(), "mpi: Barrier: this process is not among"), fails(none.Abort(), "mpi: Abort: called before Init"),
			same(nil, []any{mpi.IsOn(), mpi.WorldRank(), mpi.WorldSize()}, []any{false, 0, 1})); err != nil {
			return err
		}
		mpi.Finalize() // of nothing
		if err := mpi.InitThreadSafe(); err != nil {
			return err
		}
		c, err := mpi.NewComm(nil)
		_, twice := mpi.NewComm([]int{0, 0})
		_, outside := mpi.NewComm([]int{0, 2})
		err = all(err, fails(mpi.InitThreadSafe(), "mpi: Init: called twice"),
			fails(twice, "mpi: NewComm: ranks [0 0]: not different ones out of 0 to 1"),
			fails(outside, "mpi: NewComm: ranks [0 2]: not different ones out of 0 to 1"),
			fails(c.BcastF32(7, nil), "mpi: BcastF32: ccl: rank "), c.Barrier())
		mpi.Finalize()
		return all(err, fails(c.Barrier(), "mpi: Barrier: "), same(nil, mpi.IsOn(), true))
	}
	scenes["abort"] = joined(func(c *mpi.Comm) error {
		if c.Rank() == 1 {
			return c.Abort()
		}
		return fails(c.Barrier(), "aborted by this rank")
	})
	scenes["lost"] = joined(func(c *mpi.Comm) error {
		if c.Rank() == 1 {
			os.Exit(0) // as a program that forgets Finalize
		}
		x := make([]float32, 100)
		return fails(c.AllReduceF32(mpi.OpSum, x, nil), "rank 1")
	})
	scenes["careless"] = joined(func(c *mpi.Comm) error {
		mpi.LogErrors = false
		x := make([]float32, 100+c.Rank())
		c.AllReduceF32(mpi.OpSum, x, nil) // no eye for errors
		return nil
	})
}

func TestGroups(t *testing.T) {
	out, err := played(t, "groups", 4)
	require.NoError(t, err, out)
}

func TestMisuse(t *testing.T) {
	out, err := played(t, "misuse", 2)
	require.NoError(t, err, out)
}

// Abort ends the job with status 1, and the calls of the others.
func TestAbort(t *testing.T) {
	out, err := played(t, "abort", 3)
	var exit *boot.ExitError
	require.ErrorAs(t, err, &exit, out)
	require.Equal(t, 1, exit.Code, out)
	require.NotContains(t, out, "want aborted", out)
	require.Contains(t, out, "mpi: Abort: aborted by this rank")
}

// A rank that is gone is an error on the others, and their status.
func TestLost(t *testing.T) {
	out, err := played(t, "lost", 2)
	var exit *boot.ExitError
	require.ErrorAs(t, err, &exit, out)
	require.Equal(t, []int{0, 1}, []int{exit.Rank, exit.Code}, out)
	require.Contains(t, out, "mpi: AllReduceF32: ")
}

// A program that looks at no error has a status that tells of it.
func TestCareless(t *testing.T) {
	out, err := played(t, "careless", 2)
	var exit *boot.ExitError
	require.ErrorAs(t, err, &exit, out)
	require.Equal(t, 1, exit.Code, out)
	require.Contains(t, out, "mpi: Finalize: ")
}

// A job that cannot be joined is no job of one rank.
func TestInitFails(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EMPI_SCENE=abort", "GOCCL_RANK=1", "GOCCL_WORLD_SIZE=0")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Equal(t, 1, cmd.ProcessState.ExitCode(), string(out))
	require.Equal(t, 1, strings.Count(string(out), "mpi: Init: "), string(out))
}
