package harness

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
)

// Groups of unequal size measure the lines, the roots and as many iterations of rank 0's group, with every flag
// that decides how many calls there are.
func TestUnequalGroups(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ranks int
		args  []string
		check func(t *testing.T, f *report.File)
	}{
		// The five and four ranks make different numbers of different counts out of these sizes.
		{"counts", 9, []string{"-split", "mod:2", "-op", "allgather", "-b", "8", "-e", "1K"}, func(t *testing.T, f *report.File) {
			require.Len(t, f.Results, 7)
			require.Equal(t, 1020, f.Results[6].Size)
			require.Equal(t, 51, f.Results[6].Count)
		}},
		{"a larger group than the first", 5, []string{"-split", "mask:4", "-op", "all", "-d", "int8,double"}, nil},
		{"the first is one rank", 3, []string{"-split", "mod:2", "-op", "all"}, nil},
		{"all roots", 3, []string{"-split", "mod:2", "-op", "broadcast,reduce", "-r", "all"}, func(t *testing.T, f *report.File) {
			require.Len(t, f.Results, 2*2*5, "operators, roots of rank 0's group, sizes")
		}},
		{"a root that not all have", 3, []string{"-split", "mod:2", "-op", "gather,scatter", "-r", "1"}, func(t *testing.T, f *report.File) {
			require.Equal(t, 1, f.Results[0].Root)
		}},
		{"barriers between", 5, []string{"-split", "mod:3", "-op", "allgather,alltoall", "-z", "1"}, nil},
		{"groups of calls", 5, []string{"-split", "mod:2", "-op", "allgather", "-m", "64", "-z", "1"}, nil},
		{"by time", 5, []string{"-split", "mod:2", "-op", "allgather", "-time", "1ms"}, nil},
		{"uneven parts", 5, []string{"-split", "mod:2", "-op", "alltoallv", "-rotate", "2", "-u", "1"}, nil},
		{"drawn parts", 5, []string{"-split", "div:3", "-op", "alltoallv", "-matrix", "spread:0.9"}, nil},
		{"sizes of a model", 3, []string{"-split", "mod:2", "-plan", "zero2", "-model", "resnet50", "-n", "1"}, nil},
		{"a ring's step", 3, []string{"-split", "mod:2", "-plan", "ring", "-n", "1", "-c", "0"}, nil},
		{"iterations", 5, []string{"-split", "mod:2", "-op", "allgather", "-I", "-J", "x"}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && tc.name == "sizes of a model" {
				return // it moves hundreds of megabytes
			}
			o, err := option.Parse(tc.args)
			require.NoError(t, err)
			if o.Iters, o.ItersGiven = 5, true; tc.name != "counts" && o.Plan == "" {
				o.Min, o.Max = 64, 1024
			}
			j := sessions(t, tc.ranks, o, (*session).run).ok(t)
			require.Empty(t, j.err.String())
			require.NotEmpty(t, j.file.Results)
			if tc.check != nil {
				tc.check(t, j.file)
			}
		})
	}
}

// A rank that fails when rank 0 has measured all it has to is heard of by rank 0.
func TestLateFailureReachesRank0(t *testing.T) {
	j := sessions(t, 4, options(t, "-split", "mod:2", "-c", "0"), func(s *session) error {
		if s.group == 1 {
			more := *s.o
			more.Cycles = 2
			s.o = &more
		}
		return s.run()
	})
	for r, err := range j.errs {
		require.Error(t, err, "rank %d", r)
	}
}

func TestGroups(t *testing.T) {
	g := newGroups([]int64{0, 0, 1, 0, 0, 1, 1, 1, 0, 1}) // colors 0 1 0 1 0, two ranks on node 0 and three on node 1
	require.Equal(t, 3, g.shown())
	require.Equal(t, 2, g.hosts())
	require.Equal(t, []int{3, 2}, g.sizes())
	require.True(t, g.alike(4))
	require.False(t, g.alike(3))
	require.Equal(t, []int{2, 4}, g.visible(0), "of a barrier of ranks 0, 2 and 4 only node 1 sees something")
	require.Empty(t, g.visible(1))
	require.True(t, g.early(2, 9, []int64{0, 0, 0, 0, 10}))
	require.False(t, g.early(2, 9, []int64{10, 10, 0, 10, 9}), "of other hosts, and of another group")
}

// A matrix is for the ranks of each group.
func TestMatrixOfGroups(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	require.NoError(t, os.WriteFile(path, []byte("1 2\n3 4\n"), 0o666))
	o := options(t, "-op", "alltoallv", "-matrix", path, "-split", "node")
	j := sessions(t, 3, o, (*session).run)
	require.ErrorContains(t, j.errs[0], "it is for 2 ranks, and there are 3 in the group of rank 0")

	p := plan{Options: options(t, "-np", "3", "-op", "alltoallv", "-matrix", path, "-split", "mod:2", "-launcher", "local")}
	require.ErrorContains(t, p.check(), "it is for 2 ranks, and there are 1")
	p.NP = 4
	require.NoError(t, p.check())
	sessions(t, 4, options(t, "-op", "alltoallv", "-matrix", path, "-split", "mod:2"), (*session).run).ok(t)
}

// Times are those of the groups that are as large as rank 0's.
func TestTimesOfUnequalGroups(t *testing.T) {
	sessions(t, 3, options(t, "-split", "div:2"), func(s *session) error {
		f := &findings{us: 1}
		if s.world.Rank() == 2 {
			f.us, f.late = 1000, 5000
		}
		r, err := s.agree(s.ctx, f, &report.Row{Op: "allreduce", Type: "float", Size: 8}, false)
		require.Equal(t, 1.0, r.Time)
		require.Equal(t, 1.0, r.TimeMax)
		require.Nil(t, r.Slowest)
		return err
	}).ok(t)
}
