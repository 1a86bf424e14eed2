package main

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// runsOf has a run for each time of the one row of 8 bytes.
func runsOf(t *testing.T, times ...float64) (rs runs) {
	t.Helper()
	for _, us := range times {
		f := new(file)
		require.NoError(t, json.Unmarshal(fmt.Appendf(nil, `{"results": [{"size": 8, "out_of_place": {"time": %v}, "in_place": {"time": 1}}]}`, us), f))
		rs = append(rs, f)
	}
	return rs
}

// Medians are compared, so that one slow run does no harm; beyond the limit in either direction is bad, and so is a row that
// only one side has.
func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		quick, long []float64
		good        bool
	}{
		{[]float64{1, 1.1, 90}, []float64{1, 1, 1}, true},
		{[]float64{1, 1.2, 90}, []float64{1, 1, 1}, false},
		{[]float64{.8, .8, .8}, []float64{1, 1, 1}, false},
		{[]float64{.98, .98, .2}, []float64{.21, .21, .21}, false},
		{nil, []float64{1}, false},
	} {
		lines := compare(runsOf(t, tc.quick...), runsOf(t, tc.long...))
		require.Len(t, lines, 2)
		require.Equal(t, key{8, "out"}, lines[0].key)
		require.Equal(t, tc.good, lines[0].good(), "%v", tc)
		require.Equal(t, tc.quick != nil, lines[1].good())
	}
}
