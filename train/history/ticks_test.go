package history

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTicks(t *testing.T) {
	for _, tc := range []struct {
		lo, hi float64
		n      int
		whole  bool
		want   []string
	}{
		{1.621, 4.559, 4, false, []string{"2", "3", "4"}},
		{1.621, 4.559, 6, false, []string{"2.0", "2.5", "3.0", "3.5", "4.0", "4.5"}},
		{1, 1000, 6, true, []string{"200", "400", "600", "800", "1000"}},
		{1, 5, 6, true, []string{"1", "2", "3", "4", "5"}},
		{0, 1, 6, false, []string{"0", "0.2", "0.4", "0.6", "0.8", "1.0"}},
		{-.3, .3, 6, false, []string{"-0.3", "-0.2", "-0.1", "0", "0.1", "0.2"}},
		{0, 926851, 6, false, []string{"0", "200000", "400000", "600000", "800000"}},
		{1e-9, 3e-9, 5, false, []string{"1e-09", "1.5e-09", "2e-09", "2.5e-09", "3e-09"}},
		{7, 7, 6, true, []string{"7"}},
		{-math.MaxFloat64, math.MaxFloat64, 6, false, []string{"-1e+308", "0", "1e+308"}},
		{1e300, 1e300 * (1 + 1e-15), 6, false, []string{"1e+300"}},
		{0, 5e-324, 6, false, []string{"0"}},
	} {
		var got []string
		for _, k := range ticks(tc.lo, tc.hi, tc.n, tc.whole) {
			require.True(t, k.at >= tc.lo && k.at <= tc.hi, "%+v: %v", tc, k)
			got = append(got, k.text)
		}
		require.Equal(t, tc.want, got, "%+v", tc)
	}
}

// Numbers of all kinds have a few labels, which differ.
func TestTicksAnywhere(t *testing.T) {
	for e := -300.0; e < 300; e += 7.3 {
		for _, width := range []float64{1, 1.9, 2.1, 4.7, 9.9} {
			lo := math.Pow(10, e)
			list := ticks(lo, lo*(1+width), 6, false)
			require.GreaterOrEqual(t, len(list), 2, "%v %v", lo, width)
			require.LessOrEqual(t, len(list), 6)
			for i := range list[1:] {
				require.NotEqual(t, list[i].text, list[i+1].text, "%v %v", lo, width)
			}
		}
	}
}
