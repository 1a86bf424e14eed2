package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewPerIter(t *testing.T) {
	p := NewPerIter([]float64{1, 2, 3.00049}, [][]float64{{1, 2, 3}}, 0.12345, 0)
	require.Equal(t, 1.0, p.Min)
	require.Equal(t, 3.0, p.Max)
	require.Equal(t, 2.0, p.P50)
	require.Equal(t, 3.0, p.P99)
	require.Equal(t, 0.123, p.Skew)
	require.Equal(t, []float64{1, 2, 3}, p.Times)
}

func TestNewOverlap(t *testing.T) {
	require.Equal(t, &Overlap{Comm: 100, Compute: 200, Together: 225, Exposed: 25, Hidden: 75, Ratio: 0.5}, NewOverlap(100, 200, 225))
	require.Equal(t, &Overlap{Comm: 100, Compute: 200, Together: 190, Exposed: 0, Hidden: 100, Ratio: 0.5}, NewOverlap(100, 200, 190))
	require.Zero(t, NewOverlap(100, 200, 400).Hidden)
	require.Zero(t, *NewOverlap(0, 0, 0))
}

func TestBeside(t *testing.T) {
	row := func(us, bus float64) *Row { return &Row{Size: 1024, OutOfPlace: Result{Time: us, BusBW: &bus}} }
	require.Equal(t, "#\n# busbw (GB/s) out of place\n#       size       cpu       mpi        \n#       1024      2.00      4.00   x2.00\n",
		Beside([]*Row{row(2, 2), row(1, 4)}, []string{"cpu", "mpi"}))
}
