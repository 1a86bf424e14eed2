package harness

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
)

func TestCombine(t *testing.T) {
	all := []found{{us: 4, checked: true, wrong: 1}, {us: 1, checked: true}, {us: 7, checked: true, wrong: 2}}
	for _, tc := range []struct {
		average option.Average
		want    float64
	}{{option.OfRank0, 4}, {option.Mean, 4}, {option.Least, 1}, {option.Most, 7}} {
		r := combine(all, tc.average, 8000, 0.5)
		require.Equal(t, tc.want, r.Time)
		require.Equal(t, int64(3), *r.Wrong)
		require.InDelta(t, 8/tc.want, r.AlgBW, 1e-12)
		require.InDelta(t, 4/tc.want, *r.BusBW, 1e-12)
		require.Equal(t, []float64{1, 4, 7}, []float64{r.TimeMin, r.TimeAvg, r.TimeMax})
	}
	all[1].checked = false
	require.Nil(t, combine(all, option.Mean, 8, 1).Wrong)
	require.Nil(t, combine(all, option.Mean, 8, 0).BusBW)
}

// A rank that leaves a barrier before another of its host has come is wrong.
func TestEarly(t *testing.T) {
	all := []found{
		{node: 0, enter: 10, exit: 21},
		{node: 0, enter: 20, exit: 22},
		{node: 0, enter: 5, exit: 19}, // too early
		{node: 1, enter: 90, exit: 91},
		{node: 1}, // not checked
	}
	early(all)
	var wrong []int
	for _, f := range all {
		wrong = append(wrong, f.wrong)
	}
	require.Equal(t, []int{0, 0, 1, 0, 0}, wrong)
}
