package harness

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/verify"
)

func TestCombine(t *testing.T) {
	all := []findings{{us: 4, checked: true, wrong: 1}, {us: 1, checked: true}, {us: 7, checked: true, wrong: 2}}
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
	require.Equal(t, int64(3), *combine(all, option.Mean, 8, 1).Wrong, "what one rank has seen counts, though another sees nothing")
	all[0].wrong, all[2].wrong = 0, 0
	require.Nil(t, combine(all, option.Mean, 8, 1).Wrong)
	require.Nil(t, combine(all, option.Mean, 8, 0).BusBW)
	all[2].other = true // in a group of another size, whose calls take other times
	require.Equal(t, []float64{1, 2.5, 4}, []float64{combine(all, option.Mean, 8, 1).TimeMin, combine(all, option.Mean, 8, 1).Time, combine(all, option.Mean, 8, 1).TimeMax})
}

// Only a rank that is far behind all others is named.
func TestStandsOut(t *testing.T) {
	for _, tc := range []struct {
		name string
		late []float64
		us   float64
		want int // -1: nobody
	}{
		{"one rank", []float64{9}, 1, -1},
		{"all alike", []float64{10, 12, 9, 11}, 5, -1},
		{"the third", []float64{1, 0, 90, 2}, 50, 2},
		{"not by much", []float64{1, 0, 19, 2}, 5, -1},
		{"less than the call", []float64{1, 0, 90, 2}, 500, -1},
		{"two are late", []float64{1, 80, 90, 2}, 5, -1},
		{"of two", []float64{0, 40}, 1, -1},
		{"far, of two", []float64{0, 400}, 100, 1},
	} {
		var all []findings
		for _, late := range tc.late {
			all = append(all, findings{late: late})
		}
		got := standsOut(all, tc.us)
		if tc.want < 0 {
			require.Nil(t, got, tc.name)
		} else {
			require.NotNil(t, got, tc.name)
			require.Equal(t, tc.want, got.Rank, tc.name)
		}
	}
}

// The first rank tells the host of one that is late, from what all have said at the start.
func TestHostOfTheLate(t *testing.T) {
	o := &output{file: report.NewFile(nil, nil, time.Now())}
	require.Empty(t, o.hostOf(1))
	o.file.Config.Devices = []report.Place{{Host: "a"}, {Host: "b"}}
	require.Equal(t, "b", o.hostOf(1))
}

func TestPack(t *testing.T) {
	f := findings{us: 1.5, firstCall: 2.5, late: 3.5, checked: true, wrong: 4, first: verify.Wrong{Index: 5, Got: 6, Want: 7}, round: 8, busy: 9}
	require.Len(t, f.pack(), words)
	require.Equal(t, f, unpack(f.pack()))
}
