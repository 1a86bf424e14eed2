package report

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ptr[T any](v T) *T { return &v }

// As printed by nccl-tests 2.18, but for the numbers.
const golden = "#\n" +
	"#                                                              out-of-place                       in-place          \n" +
	"#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong \n" +
	"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  (GB/s)         \n" +
	"     1048576        262144     float     sum      -1   339.61    3.09    3.09       0   335.85    3.12    3.12       0\n" +
	"           8             2      half     avg       3    12.50    0.00     n/a     N/A  12345.7  123.46  9999.5   1e+06\n" +
	"           0             0      none    none      -1     0.25    0.00    0.00       0     0.25    0.00    0.00       0\n" +
	"# Out of bounds values : 1000000 FAILED\n" +
	"# Avg bus bandwidth    : 2001.14 \n" +
	"#\n# Collective test concluded: all_reduce_perf\n#\n"

func goldenRows() []Row {
	return []Row{
		{Size: 1 << 20, Count: 1 << 18, Type: "float", Redop: "sum", Root: -1,
			OutOfPlace: Result{Time: 339.61, AlgBW: 3.0876, BusBW: ptr(3.0876), Wrong: ptr(int64(0))},
			InPlace:    Result{Time: 335.85, AlgBW: 3.1222, BusBW: ptr(3.1222), Wrong: ptr(int64(0))}},
		{Size: 8, Count: 2, Type: "half", Redop: "avg", Root: 3,
			OutOfPlace: Result{Time: 12.5, AlgBW: 0.00064},
			InPlace:    Result{Time: 12345.67, AlgBW: 123.456, BusBW: ptr(9999.51), Wrong: ptr(int64(1000000))}},
		{Type: "none", Redop: "none", Root: -1,
			OutOfPlace: Result{Time: 0.25, BusBW: ptr(0.0), Wrong: ptr(int64(0))},
			InPlace:    Result{Time: 0.25, BusBW: ptr(0.0), Wrong: ptr(int64(0))}},
	}
}

func TestLayout(t *testing.T) {
	var s Summary
	table := Layout{}.Head()
	for _, r := range goldenRows() {
		table += Layout{}.Line(&r)
		s.Add(&r)
	}
	require.Equal(t, golden, table+s.Foot("all_reduce_perf"))
}

// Each name of the head ends in the column where the rows' numbers end.
func TestColumnsLineUp(t *testing.T) {
	lines := strings.Split(golden, "\n")
	ends := []int{12, 26, 36, 44, 52, 61, 69, 77, 85, 94, 102, 110, 118}
	for i, name := range []string{"size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw", "#wrong"} {
		require.True(t, strings.HasSuffix(lines[2][:ends[i]], " "+name), name)
		require.NotEqual(t, byte(' '), lines[4][ends[i]-1])
		if i+1 < len(ends) {
			require.Equal(t, byte(' '), lines[4][ends[i]])
		}
	}
}

func TestFit(t *testing.T) {
	for _, tc := range []struct {
		x     float64
		width int
		want  string
	}{
		{0, 7, "0.00"}, {1.005, 7, "1.00"}, {9999.99, 7, "9999.99"}, {9999.999, 7, "10000.0"}, {99999.9, 7, "99999.9"},
		{100000, 7, "100000"}, {9999999, 7, "9999999"}, {10000000, 7, "1.0e+07"}, {123456789, 7, "1.2e+08"},
		{999.99, 6, "999.99"}, {1000, 6, "1000.0"}, {12345, 6, "12345"}, {999999, 6, "999999"}, {1234567, 6, "1e+06"},
	} {
		require.Equal(t, tc.want, fit(tc.x, tc.width))
		require.LessOrEqual(t, len(tc.want), tc.width)
	}
}

func TestNewResult(t *testing.T) {
	r := NewResult(1<<30, 1e6, 1.5)
	require.InDelta(t, 1.073741824, r.AlgBW, 1e-12)
	require.InDelta(t, 1.610612736, *r.BusBW, 1e-12)
	require.Nil(t, NewResult(8, 1, 0).BusBW)
	zero := NewResult(8, 0, 1)
	require.False(t, math.IsNaN(zero.AlgBW) || math.IsInf(zero.AlgBW, 0))
}

func TestEmptySummary(t *testing.T) {
	require.Equal(t, "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 0 \n#\n# Collective test concluded: bench\n#\n", new(Summary).Foot("bench"))
}

func TestAlgorithmEndsTheLine(t *testing.T) {
	r := goldenRows()[0]
	r.Algorithm = "ring over TCP"
	require.True(t, strings.HasSuffix(Layout{}.Line(&r), "       0  ring over TCP\n"))
}

// A narrow table fits 80 columns, with its heading above its columns.
func TestNarrow(t *testing.T) {
	l := Layout{Narrow: true, Iterations: true, Stamp: true}
	row := &Row{Size: 64 << 20, Time: "now", Algorithm: "ring", OutOfPlace: Result{Time: 5436.123, BusBW: ptr(12.345), Wrong: ptr(int64(0))}, InPlace: Result{Time: .21}}
	require.Equal(t, "#\n#          out of place               in place\n"+
		"#    size       us    GB/s  #wrong       us    GB/s  #wrong\n"+
		"      64M  5436.12   12.35       0     0.21     n/a     N/A\n", l.Head()+l.Line(row))
}
