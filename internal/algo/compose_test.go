package algo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// steps is all steps of s.
func steps(s Schedule) []Step {
	var all []Step
	for k := range s.Steps {
		var st Step
		s.At(k, &st)
		all = append(all, st)
	}
	return all
}

func wantSteps(t *testing.T, s Schedule, want ...Step) {
	t.Helper()
	if got := steps(s); !slices.EqualFunc(got, want, func(a, b Step) bool {
		return slices.Equal(a.Send, b.Send) && slices.Equal(a.Recv, b.Recv)
	}) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestThen(t *testing.T) {
	a, b := on(3, to(1, 0, 1), from(2, 1, 2)), swapping(on(5, to(4, 2, 3)))
	wantSteps(t, a.then(b), to(1, 0, 1), from(2, 1, 2), to(4, 2, 3))
	wantSteps(t, on(3).then(b), to(4, 2, 3))
	wantSteps(t, a.then(on(5)), to(1, 0, 1), from(2, 1, 2))
	wantSteps(t, on(3).then(on(5)))
	require.Equal(t, 3, a.then(b).Parts)
	require.True(t, a.then(b).Swap)
	require.False(t, a.then(on(1)).Swap, "neither did")
}

func TestMirror(t *testing.T) {
	s := on(3, to(1, 0, 1), both(from(2, 1, 2), from(1, 2, 3), to(2, 0, 1)))
	wantSteps(t, s.mirror(false), both(to(2, 1, 2), to(1, 2, 3), from(2, 0, 1)), from(1, 0, 1))
	wantSteps(t, s.mirror(true), both(to(2, 1, 2), to(1, 2, 3), add(2, 0, 1)), add(1, 0, 1))
	wantSteps(t, on(1).mirror(true))
	// Asking for a step leaves s as it was.
	wantSteps(t, s, to(1, 0, 1), both(from(2, 1, 2), from(1, 2, 3), to(2, 0, 1)))
}

func TestOneMove(t *testing.T) {
	m := Move{Peer: 3, Lo: 1, Hi: 4}
	wantSteps(t, sendTo(m), to(3, 1, 4))
	wantSteps(t, recvFrom(m), from(3, 1, 4))
}

func TestGroups(t *testing.T) {
	topo := Placed([]int{0, 1, 2, 0, 1, 2, 0}) // host 0: 0 3 6, host 1: 1 4, host 2: 2 5
	members := func(g group) (ranks []int) {
		for i := range g.size {
			ranks = append(ranks, g.rank(i))
		}
		return ranks
	}
	for _, tc := range []struct {
		name string
		g    group
		me   int
		want []int
	}{
		{"byRank", byRank(topo, 4), 4, []int{0, 1, 2, 3, 4, 5, 6}},
		{"byHost", byHost(topo, 4), 4, []int{0, 3, 6, 1, 4, 2, 5}},
		{"from", byHost(topo, 6).from(4), 5, []int{4, 2, 5, 0, 3, 6, 1}},
		{"locals", locals(topo, 3), 1, []int{0, 3, 6}},
		{"leaders", leaders(topo, 3, 4), 0, []int{0, 4, 2}},
	} {
		require.Equal(t, tc.want, members(tc.g), tc.name)
		require.Equal(t, tc.me, tc.g.me, tc.name)
	}
	g := byHost(topo, 0)
	require.Equal(t, []int{5, 0, 3}, []int{g.peer(-1), g.peer(7), g.peer(8)}, "around")
}

func TestMod(t *testing.T) {
	for _, tc := range [][3]int{{0, 5, 0}, {4, 5, 4}, {5, 5, 0}, {-1, 5, 4}, {-5, 5, 0}, {-11, 5, 4}, {7, 1, 0}} {
		require.Equal(t, tc[2], mod(tc[0], tc[1]), "mod(%d, %d)", tc[0], tc[1])
	}
}

func TestAround(t *testing.T) {
	for _, tc := range []struct {
		lo, hi int
		want   []Move
	}{
		{0, 5, []Move{{Peer: 9, Lo: 0, Hi: 5}}},
		{3, 5, []Move{{Peer: 9, Lo: 3, Hi: 5}}},
		{3, 6, []Move{{Peer: 9, Lo: 3, Hi: 5}, {Peer: 9, Lo: 0, Hi: 1}}},
		{6, 8, []Move{{Peer: 9, Lo: 1, Hi: 3}}},
		{-2, 1, []Move{{Peer: 9, Lo: 3, Hi: 5}, {Peer: 9, Lo: 0, Hi: 1}}},
		{2, 7, []Move{{Peer: 9, Lo: 2, Hi: 5}, {Peer: 9, Lo: 0, Hi: 2}}},
	} {
		require.Equal(t, tc.want, around(nil, 9, tc.lo, tc.hi, 5), "[%d,%d)", tc.lo, tc.hi)
	}
}
