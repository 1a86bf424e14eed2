package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMissed(t *testing.T) {
	row := Row{Op: "allreduce", Type: "float", Size: 64, OutOfPlace: Result{BusBW: ptr(3.0)}, InPlace: Result{BusBW: ptr(5.0)},
		InPlaceIter: &PerIter{P99: 12.5}}
	for _, tc := range []struct {
		busbw float64
		p99   time.Duration
		want  []string
	}{
		{0, 0, nil},
		{4, 13 * time.Microsecond, nil},
		{4.1, 0, []string{"-min-busbw 4.1: the average bus bandwidth is 4 GB/s"}},
		{0, 12 * time.Microsecond, []string{"-max-p99 12µs: the 99th percentile of allreduce float, 64 bytes, in place, is 12.5 us"}},
	} {
		s := Summary{MinBusBW: tc.busbw, MaxP99: tc.p99}
		s.Add(&row)
		require.Equal(t, tc.want, s.Missed())
		f := &File{}
		f.Close(&s, time.Now())
		if tc.busbw == 0 {
			require.Equal(t, "unchecked", f.Average.OK)
		} else {
			require.Equal(t, len(tc.want) == 0, f.Average.OK)
		}
	}
}

// No percentile of a sample lies below its mean: where one does, the pass of single iterations was a quieter one, and that is said.
func TestBelowMean(t *testing.T) {
	f := &File{Results: []Row{
		{Op: "allreduce", Type: "float", Size: 64, OutOfPlace: Result{Time: 5}, InPlace: Result{Time: 5}, OutOfPlaceIter: &PerIter{P99: 5}, InPlaceIter: &PerIter{P99: 6}},
		{Op: "allreduce", Type: "float", Size: 128, OutOfPlace: Result{Time: 5}}, // has none
	}}
	require.Empty(t, f.BelowMean())
	f.Results = append(f.Results, Row{Op: "reduce", Type: "half", Size: 2 << 20, OutOfPlace: Result{Time: 5}, InPlace: Result{Time: 8}, OutOfPlaceIter: &PerIter{P99: 4}, InPlaceIter: &PerIter{P99: 4}})
	require.Equal(t, "the 99th percentile is below the mean in 2 half lines: single iterations are timed in a pass of their own, and the machine was "+
		"busier in the other pass. The farthest is reduce half, 2 MiB, in place: its 4 us, and its mean 8 us", f.BelowMean())
	require.Contains(t, f.Words(), Word{"T" + f.BelowMean()[1:] + ".", true})
}

// Results are called correct only where some have been checked: with -c 0 none are.
func TestUncheckedIsNotCorrect(t *testing.T) {
	correct, none := Word{"All checked results are correct.", false}, int64(0)
	f := &File{OutOfBounds: Verdict{OK: true}, Results: []Row{{Op: "allreduce", Size: 8}, {Op: "allreduce", Size: 16}}}
	require.NotContains(t, f.Words(), correct)
	f.Results[1].InPlace.Wrong = &none
	require.Contains(t, f.Words(), correct)
}
