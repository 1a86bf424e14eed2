package algo

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
)

func TestKind(t *testing.T) {
	for _, tc := range []struct {
		k                       Kind
		text                    string
		reduces, rooted, blocks bool
	}{
		{Barrier, "barrier", false, false, false},
		{Broadcast, "broadcast", false, true, false},
		{Reduce, "reduce", true, true, false},
		{AllReduce, "allreduce", true, false, false},
		{ReduceScatter, "reducescatter", true, false, true},
		{AllGather, "allgather", false, false, true},
		{Gather, "gather", false, true, true},
		{Scatter, "scatter", false, true, true},
		{AllToAll, "alltoall", false, false, true},
		{AllToAll + 1, "Kind(9)", false, false, false},
	} {
		if got := tc.k.String(); got != tc.text {
			t.Errorf("String is %q, want %q", got, tc.text)
		}
		if got := tc.k.Reduces(); got != tc.reduces {
			t.Errorf("%s: Reduces is %v", tc.k, got)
		}
		if got := tc.k.Rooted(); got != tc.rooted {
			t.Errorf("%s: Rooted is %v", tc.k, got)
		}
		if got := tc.k.Blocks(); got != tc.blocks {
			t.Errorf("%s: Blocks is %v", tc.k, got)
		}
	}
}

func TestNames(t *testing.T) {
	for k, want := range map[Kind][]string{
		Barrier:       {"dissemination", "tree", "hier", "direct"},
		Broadcast:     {"tree", "scatter-ring", "direct"},
		Reduce:        {"tree", "scatter-ring", "chain", "direct"},
		AllReduce:     {"ring", "doubling", "halving", "dissemination", "tree", "hier", "hier-ring", "chain", "direct"},
		ReduceScatter: {"ring", "dissemination", "chain", "direct"},
		AllGather:     {"ring", "dissemination", "direct"},
		Gather:        {"tree", "direct"},
		Scatter:       {"tree", "direct"},
		AllToAll:      {"pairwise", "direct"},
		AllToAll + 1:  nil,
	} {
		if got := Names(k); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", k, got, want)
		}
	}
}

func TestBuildErrors(t *testing.T) {
	for _, tc := range []struct {
		name       string
		k          Kind
		n          int
		rank, root int
		want       string
	}{
		{"rnig", AllReduce, 4, 0, 0, `algo: "rnig": no such algorithm for allreduce; there are ring, doubling, halving, dissemination, tree, hier, hier-ring, chain, direct`},
		{"pairwise", Gather, 4, 0, 0, `algo: "pairwise": no such algorithm for gather; there are tree, direct`},
		{"pairwise", Gather, 1, 0, 0, `algo: "pairwise": no such algorithm for gather; there are tree, direct`},
		{"ring", AllToAll + 1, 4, 0, 0, "algo: Kind(9): no such collective; there are barrier, broadcast, reduce, allreduce, reducescatter, allgather, gather, scatter, alltoall"},
		{"ring", AllReduce, 0, 0, 0, "algo: ring allreduce: a topology of 0 ranks; there must be at least 1"},
		{"ring", AllReduce, 4, 4, 0, "algo: ring allreduce: rank 4 of 4 ranks; ranks are 0 to 3"},
		{"ring", AllReduce, 4, -1, 0, "algo: ring allreduce: rank -1 of 4 ranks; ranks are 0 to 3"},
		{"tree", Reduce, 4, 0, 4, "algo: tree reduce: root 4 of 4 ranks; ranks are 0 to 3"},
		{"tree", Reduce, 4, 0, -1, "algo: tree reduce: root -1 of 4 ranks; ranks are 0 to 3"},
		{"tree", AllReduce, 4, 0, -1, ""},
	} {
		got := ""
		if _, err := Build(tc.name, tc.k, Flat(tc.n), tc.rank, tc.root); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("got  %q\nwant %q", got, tc.want)
		}
	}
}

// everyName calls do for every algorithm of every kind.
func everyName(do func(k Kind, name string)) {
	for k := range Kind(kinds) {
		for _, name := range Names(k) {
			do(k, name)
		}
	}
}

func TestOneRankHasNoSteps(t *testing.T) {
	everyName(func(k Kind, name string) {
		s, err := Build(name, k, Flat(1), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s.Name != name || s.Parts != 1 || s.Steps != 0 {
			t.Errorf("%s %s: %+v", name, k, s)
		}
		st := Step{Send: make([]Move, 3), Recv: make([]Move, 3)}
		if s.At(0, &st); len(st.Send)+len(st.Recv) != 0 {
			t.Errorf("%s %s: step 0 is %+v", name, k, st)
		}
	})
}

func TestBuildSaysWhatItBuilt(t *testing.T) {
	everyName(func(k Kind, name string) {
		for r := range 6 {
			s, err := Build(name, k, Blocks(3, 2), r, 0)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("%s %s: named %q", name, k, s.Name)
			}
			if want := name == "doubling" || name == "hier" && k == AllReduce; s.Swap && !want {
				t.Errorf("%s %s swaps", name, k)
			}
		}
	})
}

// TestStepsInAnyOrder asks for the steps of a schedule shuffled, into one Step.
func TestStepsInAnyOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	everyName(func(k Kind, name string) {
		for r := range 13 {
			s, err := Build(name, k, placements[4].of(13), r, 5)
			if err != nil {
				t.Fatal(err)
			}
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
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	everyName(func(k Kind, name string) {
		for _, topo := range []Topology{Blocks(16, 1), placements[4].of(16)} {
			for _, r := range []int{0, 7, 15} {
				s, err := Build(name, k, topo, r, 7)
				if err != nil {
					t.Fatal(err)
				}
				var st Step
				all := func() {
					for i := range s.Steps {
						s.At(i, &st)
					}
				}
				for range 4 {
					all() // a mirrored schedule swaps the two slices; both have to grow
				}
				if got := testing.AllocsPerRun(10, all); got != 0 {
					t.Errorf("%s %s rank %d: %v allocations", name, k, r, got)
				}
			}
		}
	})
}

// TestManyRanks builds for the largest machine there is: what a schedule holds must
// not grow with the ranks.
func TestManyRanks(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	size := func(name string, k Kind, topo Topology) float64 {
		return testing.AllocsPerRun(10, func() {
			if _, err := Build(name, k, topo, 5, 0); err != nil {
				t.Fatal(err)
			}
		})
	}
	everyName(func(k Kind, name string) {
		small, large := size(name, k, Blocks(2, 12)), size(name, k, Blocks(10080, 12))
		if large > small+8 {
			t.Errorf("%s %s: %v allocations for 24 ranks, %v for 120,960", name, k, small, large)
		}
	})
	s, err := Build("ring", AllReduce, Blocks(10080, 12), 120_959, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got Step
	s.At(s.Steps-1, &got)
	want := Step{Send: []Move{{Peer: 0, Lo: 1, Hi: 2}}, Recv: []Move{{Peer: 120_958, Lo: 0, Hi: 1}}}
	if s.Steps != 2*120_959 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d steps, the last %+v", s.Steps, got)
	}
}
