package optim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/optim"
)

// Matrices decay, and what has one dimension does not; a schedule changes one group.
func ExampleNewGroups() {
	units := [][]int{{1000, 10}, {64, 8}} // each a matrix and a bias
	groups, err := optim.NewGroups(units,
		optim.Group[optim.AdamW]{Name: "biases", Has: func(_, param int) bool { return param == 1 }, Hyper: optim.AdamW{LR: 1e-3}},
		optim.Group[optim.AdamW]{Name: "matrices", Hyper: optim.AdamW{LR: 1e-3, Decay: .1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	groups.Hyper("matrices").LR = 5e-4
	for param := range 2 {
		h := groups.Of(1, param)
		fmt.Println(h.LR, h.Decay)
	}
	// Output:
	// 0.0005 0.1
	// 0.001 0
}

func TestGroups(t *testing.T) {
	type group = optim.Group[float64]
	units := [][]int{{3, 4}, {}, {0}}
	all := func(int, int) bool { return true }
	for want, groups := range map[string][]group{
		"optim: parameter 0 of unit 0 is in no group; a last group without Has takes what is left": {},
		"optim: parameter 1 of unit 0 is in no group; a last group without Has takes what is left": {{Name: "a", Has: func(_, p int) bool { return p == 0 }}},
		`optim: group "b" has no parameters, or groups before it have them`:                        {{Name: "a", Has: all}, {Name: "b"}},
		`optim: two groups are named "a"`:                                                          {{Name: "a", Has: func(u, _ int) bool { return u == 0 }}, {Name: "a"}},
	} {
		_, err := optim.NewGroups(units, groups...)
		require.EqualError(t, err, want)
	}
	g, err := optim.NewGroups(units, group{Name: "a", Has: func(u, p int) bool { return u == 0 && p == 1 }, Hyper: 1}, group{Name: "b", Hyper: 2})
	require.NoError(t, err)
	for at, want := range map[[2]int]float64{{0, 0}: 2, {0, 1}: 1, {2, 0}: 2, {1, 0}: 0, {-1, 0}: 0, {0, 2}: 0, {3, 0}: 0, {0, -1}: 0} {
		require.Equal(t, want, g.Of(at[0], at[1]))
	}
	require.Nil(t, g.Hyper("c"))
	*g.Hyper("b") = 3
	require.Equal(t, 3., g.Of(2, 0))
	require.Zero(t, testing.AllocsPerRun(10, func() { _ = g.Of(0, 1) }))
}
