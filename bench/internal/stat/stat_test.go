package stat

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOf(t *testing.T) {
	var x []float64
	for i := range 200 {
		x = append(x, float64(200-i))
	}
	s := Of(x)
	require.Equal(t, []float64{1, 200, 100.5, 100, 190, 198}, []float64{s.Min, s.Max, s.Avg, s.P50, s.P95, s.P99})
	require.InDelta(t, 57.879, s.Stdev, 1e-3)
	require.InDelta(t, 57.591, s.CV, 1e-3)
	require.Equal(t, 200.0, x[0], "left as it was")
	require.Equal(t, Spread{Min: 3, Max: 3, Avg: 3, P50: 3, P95: 3, P99: 3}, Of([]float64{3}))
	require.Zero(t, Of(nil))
	require.Equal(t, 9.0, Of([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9}).P99)
}

func TestMedian(t *testing.T) {
	require.Equal(t, 2.0, Median([]float64{3, 1, 2}))
	require.Equal(t, 2.5, Median([]float64{4, 3, 1, 2}))
	require.Zero(t, Median(nil))
}

// By hand: means 12.4 and 15.5, variance (4*5.3+3*5/3)/7 = 3.743, 1.2978 standard errors, 2.3646 of t.
func TestStudent(t *testing.T) {
	d := Student([]float64{10, 12, 11, 16, 13}, []float64{14, 15, 16, 17}, 0.95)
	require.InDelta(t, 3.1, d.Estimate, 1e-12)
	require.InDelta(t, 0.031, d.Low, 0.002)
	require.InDelta(t, 6.169, d.High, 0.002)
	require.True(t, d.Excludes(0))
	require.True(t, math.IsInf(Student([]float64{1}, []float64{2, 3}, 0.95).High, 1))
	require.Equal(t, Interval{1, 1, 1}, Student([]float64{1, 1}, []float64{2, 2}, 0.95))
}

// By hand, of the 10 orders of 2 and 3 values; and the critical values of every table of the test, at 5 % (two sides): of
// the pairs of 5 and 5 values 2 may be the wrong way round, of 3 and 5 none.
func TestSeparate(t *testing.T) {
	require.InDelta(t, 0.2, Separate([]float64{1, 2}, []float64{3, 4, 5}), 1e-12)
	require.InDelta(t, 0.2, Separate([]float64{6, 7}, []float64{3, 4, 5}), 1e-12)
	require.InDelta(t, 0.4, Separate([]float64{1, 3.5}, []float64{3, 4, 5}), 1e-12)
	require.Equal(t, 1.0, Separate([]float64{1, 2}, []float64{1, 2}))
	require.Equal(t, 1.0, Separate([]float64{1, 1}, []float64{1, 1}))
	require.InDelta(t, 2.0/66, LeastSeparate(2, 10), 1e-9)
	for _, tc := range []struct {
		a, b []float64
		less bool
	}{
		{[]float64{1, 2, 3, 4, 7.5}, []float64{6, 7, 8, 9, 10}, true},
		{[]float64{1, 2, 3, 4, 8.5}, []float64{6, 7, 8, 9, 10}, false},
		{[]float64{1, 2, 3}, []float64{6, 7, 8, 9, 10}, true},
		{[]float64{1, 2, 6.5}, []float64{6, 7, 8, 9, 10}, false},
	} {
		require.Equal(t, tc.less, Separate(tc.a, tc.b) < 0.05, "%+v", tc)
	}
}

func TestT(t *testing.T) {
	require.InDelta(t, 2.086, T(20, 0.95), 1e-3)
	require.InDelta(t, 636.619, T(1, 0.999), 1e-3)
	require.InDelta(t, 1.9600, T(1e6, 0.95), 1e-4)
	require.InDelta(t, 1.9600, T(math.Inf(1), 0.95), 1e-4)
}

// The critical values are those of every table of the signed rank test: at 5 % (two
// sides) 0 of 6, 8 of 10, 52 of 20, where a sum of at most that rejects.
func TestSignedRank(t *testing.T) {
	for _, tc := range []struct {
		n    int
		tail float64
		want int
	}{{5, 0.025, 0}, {6, 0.025, 1}, {10, 0.025, 9}, {20, 0.025, 53}, {20, 0.005, 38}} {
		require.Equal(t, tc.want, signedRank(tc.n, tc.tail), "%+v", tc)
	}
}

func TestShift(t *testing.T) {
	x := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 1000} // one outlier
	d := Shift(x, 0.95)
	require.InDelta(t, 5.5, d.Estimate, 0.51)
	require.Less(t, d.High, 550.0)
	require.True(t, d.Excludes(0))
	require.True(t, math.IsInf(Shift([]float64{1, 2}, 0.95).Low, -1))
	require.True(t, math.IsInf(Shift(nil, 0.95).Low, -1))
}
