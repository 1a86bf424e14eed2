package algo

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/race"
)

func TestNames(t *testing.T) {
	for k, want := range map[op.Kind][]string{
		op.Barrier:       {"dissemination", "tree", "hier", "direct"},
		op.Broadcast:     {"tree", "scatter-ring", "direct"},
		op.Reduce:        {"tree", "scatter-ring", "chain", "direct"},
		op.AllReduce:     {"ring", "doubling", "halving", "dissemination", "tree", "hier", "hier-ring", "chain", "direct"},
		op.ReduceScatter: {"ring", "dissemination", "chain", "direct"},
		op.AllGather:     {"ring", "dissemination", "direct"},
		op.Gather:        {"tree", "direct"},
		op.Scatter:       {"tree", "direct"},
		op.AllToAll:      {"pairwise", "direct"},
		op.AllToAllV:     nil,
	} {
		require.Equal(t, want, Names(k), "%s", k)
	}
}

func TestBuildErrors(t *testing.T) {
	for _, tc := range []struct {
		name       string
		k          op.Kind
		n          int
		rank, root int
		want       string
	}{
		{"rnig", op.AllReduce, 4, 0, 0, `algo: "rnig": no such algorithm for allreduce; there are ring, doubling, halving, dissemination, tree, hier, hier-ring, chain, direct`},
		{"pairwise", op.Gather, 4, 0, 0, `algo: "pairwise": no such algorithm for gather; there are tree, direct`},
		{"pairwise", op.Gather, 1, 0, 0, `algo: "pairwise": no such algorithm for gather; there are tree, direct`},
		{"ring", op.AllToAllV, 4, 0, 0, "algo: alltoallv: no such collective; there are barrier, broadcast, reduce, allreduce, reducescatter, allgather, gather, scatter, alltoall"},
		{"ring", op.AllReduce, 0, 0, 0, "algo: ring allreduce: a topology of 0 ranks; there must be at least 1"},
		{"ring", op.AllReduce, 4, 4, 0, "algo: ring allreduce: rank 4 of 4 ranks; ranks are 0 to 3"},
		{"ring", op.AllReduce, 4, -1, 0, "algo: ring allreduce: rank -1 of 4 ranks; ranks are 0 to 3"},
		{"tree", op.Reduce, 4, 0, 4, "algo: tree reduce: root 4 of 4 ranks; ranks are 0 to 3"},
		{"tree", op.Reduce, 4, 0, -1, "algo: tree reduce: root -1 of 4 ranks; ranks are 0 to 3"},
		{"tree", op.AllReduce, 4, 0, -1, ""},
	} {
		if _, err := Build(tc.name, tc.k, Flat(tc.n), tc.rank, tc.root); tc.want == "" {
			require.NoError(t, err)
		} else {
			require.EqualError(t, err, tc.want)
		}
	}
}

// everyName calls do for every algorithm of every kind.
func everyName(do func(k op.Kind, name string)) {
	for _, k := range collectives {
		for _, name := range Names(k) {
			do(k, name)
		}
	}
}

func TestOneRankHasNoSteps(t *testing.T) {
	everyName(func(k op.Kind, name string) {
		s, err := Build(name, k, Flat(1), 0, 0)
		require.NoError(t, err)
		require.Equal(t, []any{name, 1, 0}, []any{s.Name, s.Parts, s.Steps}, "%s %s", name, k)
		st := Step{Send: make([]Move, 3), Recv: make([]Move, 3)}
		s.At(0, &st)
		require.Zero(t, len(st.Send)+len(st.Recv), "%s %s: step 0 is %+v", name, k, st)
	})
}

func TestBuildSaysWhatItBuilt(t *testing.T) {
	everyName(func(k op.Kind, name string) {
		for r := range 6 {
			s, err := Build(name, k, Blocks(3, 2), r, 0)
			require.NoError(t, err)
			require.Equal(t, name, s.Name, "%s", k)
			if want := name == "doubling" || name == "hier" && k == op.AllReduce; s.Swap && !want {
				t.Errorf("%s %s swaps", name, k)
			}
		}
	})
}

// TestStepsInAnyOrder asks for the steps of a schedule shuffled, into one Step.
func TestStepsInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	everyName(func(k op.Kind, name string) {
		for r := range 13 {
			s, err := Build(name, k, placements[4].of(13), r, 5)
			require.NoError(t, err)
			want := make([]Step, s.Steps)
			for i := range want {
				s.At(i, &want[i])
			}
			var st Step
			for _, i := range rng.Perm(s.Steps) {
				s.At(i, &st)
				if !slices.Equal(st.Send, want[i].Send) || !slices.Equal(st.Recv, want[i].Recv) {
					t.Fatalf("%s %s rank %d step %d: %+v, want %+v", name, k, r, i, st, want[i])
				}
			}
		}
	})
}

func TestStepsAllocateNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	everyName(func(k op.Kind, name string) {
		for _, topo := range []Topology{Blocks(16, 1), placements[4].of(16)} {
			for _, r := range []int{0, 7, 15} {
				s, err := Build(name, k, topo, r, 7)
				require.NoError(t, err)
				var st Step
				all := func() {
					for i := range s.Steps {
						s.At(i, &st)
					}
				}
				for range 4 {
					all() // a mirrored schedule swaps the two slices; both have to grow
				}
				require.Zero(t, testing.AllocsPerRun(10, all), "%s %s rank %d", name, k, r)
			}
		}
	})
}

// TestManyRanks builds for the largest machine there is: what a schedule holds must
// not grow with the ranks.
func TestManyRanks(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	size := func(name string, k op.Kind, topo Topology) float64 {
		return testing.AllocsPerRun(10, func() {
			_, err := Build(name, k, topo, 5, 0)
			require.NoError(t, err)
		})
	}
	everyName(func(k op.Kind, name string) {
		small, large := size(name, k, Blocks(2, 12)), size(name, k, Blocks(10080, 12))
		require.LessOrEqual(t, large, small+8, "%s %s: allocations for 120,960 ranks, and for 24", name, k)
	})
	s, err := Build("ring", op.AllReduce, Blocks(10080, 12), 120_959, 0)
	require.NoError(t, err)
	var got Step
	s.At(s.Steps-1, &got)
	want := Step{Send: []Move{{Peer: 0, Lo: 1, Hi: 2}}, Recv: []Move{{Peer: 120_958, Lo: 0, Hi: 1}}}
	require.Equal(t, 2*120_959, s.Steps)
	require.Equal(t, want, got)
}
