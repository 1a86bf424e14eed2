// Package stat has the statistics of repeated timings.
package stat

import (
	"math"
	"slices"

	"github.com/aclements/go-moremath/mathx"
	"github.com/aclements/go-moremath/stats"
)

// Spread describes repeated timings.
type Spread struct {
	Min, Max, Avg, P50, P95, P99, Stdev float64
	CV                                  float64 // Stdev as percent of Avg
}

// Of describes x, which it leaves as it is. Percentiles are the smallest value that so
// many percent do not exceed, a value that was measured; with fewer than 100 the 99th
// is the largest.
func Of(x []float64) Spread {
	if len(x) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(x))
	at := func(percent int) float64 { return sorted[(percent*len(x)+99)/100-1] }
	s := Spread{Min: sorted[0], Max: sorted[len(x)-1], P50: at(50), P95: at(95), P99: at(99)}
	if s.Avg = stats.Mean(x); len(x) > 1 {
		s.Stdev = stats.StdDev(x)
	}
	if s.Avg > 0 {
		s.CV = 100 * s.Stdev / s.Avg
	}
	return s
}

// Median is the middle of x, or the mean of the two there; 0 of nothing.
func Median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	if len(s) == 0 {
		return 0
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// Interval is an estimate, and where the truth lies with the confidence that was asked
// for. Without a finite interval the samples do not tell.
type Interval struct{ Estimate, Low, High float64 }

// Excludes reports whether x lies outside.
func (i Interval) Excludes(x float64) bool { return x < i.Low || x > i.High }

// Student estimates mean(b) - mean(a) of independent samples with one variance (Student, 1908). Of samples that
// come from one distribution it is as sure as it says however many each has. Welch's, which allows for two
// variances, is not: of two against ten it excludes the truth three times as often.
func Student(a, b []float64, confidence float64) Interval {
	d := Interval{stats.Mean(b) - stats.Mean(a), math.Inf(-1), math.Inf(1)}
	na, nb := float64(len(a)), float64(len(b))
	if na < 2 || nb < 2 {
		return d
	}
	freedom := na + nb - 2
	variance := ((na-1)*stats.Variance(a) + (nb-1)*stats.Variance(b)) / freedom
	half := 0.0
	if variance > 0 {
		half = T(freedom, confidence) * math.Sqrt(variance*(1/na+1/nb))
	}
	return Interval{d.Estimate, d.Estimate - half, d.Estimate + half}
}

// Separate is the probability that samples from one distribution lie as far apart as a and b by their ranks, in either
// direction (Mann and Whitney, 1947). One outlier, however far off, hardly matters. Equal values tell nothing: it is 1.
func Separate(a, b []float64) float64 {
	r, err := stats.MannWhitneyUTest(a, b, stats.LocationDiffers)
	if err != nil { // no values, or all equal
		return 1
	}
	return r.P
}

// LeastSeparate is the least that Separate can be of n against m values.
func LeastSeparate(n, m int) float64 { return min(2/mathx.Choose(n+m, n)*(1+1e-9), 1) }

// T is how many standard errors an interval of that confidence reaches to each side.
func T(freedom, confidence float64) float64 {
	if math.IsInf(freedom, 1) {
		return stats.StdNormal.InvCDF(0.5 + confidence/2)
	}
	return stats.InvCDF(stats.TDist{V: freedom})(0.5 + confidence/2)
}

// Shift estimates the middle of x as Hodges and Lehmann (1963) do, by the median of
// the means of all pairs, and its interval by the signed ranks of Wilcoxon (1945): x
// need be symmetric, not normal, and a few outliers hardly move it.
func Shift(x []float64, confidence float64) Interval {
	n := len(x)
	if n == 0 {
		return Interval{0, math.Inf(-1), math.Inf(1)}
	}
	var means []float64
	for i := range x {
		for j := i; j < n; j++ {
			means = append(means, (x[i]+x[j])/2)
		}
	}
	slices.Sort(means)
	d := Interval{Median(means), math.Inf(-1), math.Inf(1)}
	if k := signedRank(n, (1-confidence)/2); k > 0 {
		d.Low, d.High = means[k-1], means[len(means)-k]
	}
	return d
}

// signedRank is the largest k for which the sum of n signed ranks is less than k with
// probability of at most tail; 0 if there is none.
func signedRank(n int, tail float64) int {
	most := n * (n + 1) / 2
	p := make([]float64, most+1) // that the positive ranks add up to i
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		for i := most; i >= 0; i-- {
			p[i] /= 2
			if i >= rank {
				p[i] += p[i-rank] / 2
			}
		}
	}
	below := 0.0
	for k := range p {
		if below += p[k]; below > tail {
			return k
		}
	}
	return 0
}
