package fit

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/report"
)

// shared is a run on one host, whose calls take us(size), and up to 4 % more.
func shared(us func(size float64) float64) *report.File {
	f := &report.File{Version: 3, Schema: report.Schema, Config: report.Config{Setup: report.Setup{Ranks: 4, Hosts: 1}}}
	noise := rand.New(rand.NewPCG(7, 7))
	for size := 8; size <= 64<<20; size *= 2 {
		time := func() float64 { return us(float64(size)) * (1 + .04*noise.Float64()) }
		f.Results = append(f.Results, report.Row{Op: "allreduce", Size: size, Algorithm: "staged over shared memory",
			OutOfPlace: report.Result{Time: time()}, InPlace: report.Result{Time: time()}})
	}
	return f
}

// Latency, and the bandwidth of each range, are found within 10 %, with ranges that end where they end.
func TestPlainFit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		us     func(float64) float64
		alpha  float64   // of the first range
		speeds []float64 // GB/s, of each range
	}{
		{"one range", func(m float64) float64 { return 2 + m/10e3 }, 2, []float64{10}},
		{"two", func(m float64) float64 {
			if m <= 64<<10 {
				return 1 + m/4e3
			}
			return 12 + m/9e3
		}, 1, []float64{4, 9}},
		{"caches end", func(m float64) float64 {
			if m <= 1<<20 {
				return 1 + m/20e3
			}
			return 30 + m/7e3
		}, 1, []float64{20, 7}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := PlainOf(shared(tc.us), "allreduce")
			require.NoError(t, err)
			require.Len(t, p.Ranges, len(tc.speeds))
			require.InEpsilon(t, tc.alpha, p.Ranges[0].alpha.Estimate, .1)
			last := 4
			for i, r := range p.Ranges {
				require.InEpsilon(t, tc.speeds[i], 1/r.beta.Estimate/1e3, .1)
				require.Equal(t, 2*last, r.From, "the ranges leave nothing out")
				require.Less(t, r.Farthest, .05)
				require.LessOrEqual(t, r.Typical, r.Farthest)
				last = r.To
			}
			require.Equal(t, 64<<20, last)
		})
	}
}

// What is printed is marked, and is not extrapolated.
func TestPlainIsMarked(t *testing.T) {
	run := save(t, shared(func(m float64) float64 { return 2 + m/10e3 }))
	var out, errs bytes.Buffer
	require.Zero(t, Command([]string{run}, &out, &errs), &errs)
	require.Contains(t, out.String(), "PLAIN FIT of whole calls")
	require.Contains(t, out.String(), "\n         8       64M  ")
	require.Empty(t, errs.String())

	out.Reset()
	require.Equal(t, 1, Command([]string{run, "-extrapolate", "16"}, &out, &errs))
	require.Contains(t, errs.String(), "-hosts 2, or several machines")
	require.NotContains(t, out.String(), "EXTRAPOLATED")

	_, err := PlainOf(shared(func(m float64) float64 { return 100 - m/1e6 }), "allreduce")
	require.ErrorIs(t, err, errLine)
}
