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
