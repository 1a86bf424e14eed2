package measure

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Main runs the commands with which a program that measures starts itself, measure and job; done is false if
// it was started otherwise.
func Main() (done bool, err error) {
	switch args := os.Args[1:]; {
	case len(args) > 0 && args[0] == "measure": // one rank
		return true, measure(args[1:])
	case len(args) > 2 && args[0] == "job": // all of its ranks
		return true, job(args[1:])
	}
	return false, nil
}

// Job is the command that runs the program self as a job of so many ranks, on this host as it is if hosts is 0.
func Job(self string, ranks, hosts int, args ...string) []string {
	return append([]string{self, "job", strconv.Itoa(ranks), strconv.Itoa(hosts)}, args...)
}

// Key is what is compared: an operation at a size.
type Key struct {
	Op    string
	Bytes int
}

// Times are the microseconds that a program which measures has printed. Of several for one key, as of Gloo's
// algorithms, the best counts.
func Times(output string) map[Key]float64 {
	times := map[Key]float64{}
	for line := range strings.Lines(output) {
		f := strings.Split(strings.TrimSpace(line), ",")
		if len(f) < 8 {
			continue
		}
		size, err1 := strconv.Atoi(f[3])
		us, err2 := strconv.ParseFloat(f[4], 64)
		if err1 != nil || err2 != nil || f[7] != "0" {
			continue
		}
		k := Key{f[1], size}
		if old, ok := times[k]; !ok || us < old {
			times[k] = us
		}
	}
	return times
}

// Ratios are those of two series of times, round by round.
func Ratios(a, b []float64) []float64 {
	ratios := make([]float64, min(len(a), len(b)))
	for i := range ratios {
		ratios[i] = a[i] / b[i]
	}
	return ratios
}

// Median is the median, and its 95 % interval by order statistics: the ranks n/2 -+ 0.98 sqrt(n) of the sorted values,
// which no assumption about their distribution enters.
func Median(x []float64) (mid, low, high float64) {
	s := slices.Sorted(slices.Values(x))
	n := len(s)
	if n == 0 {
		return math.NaN(), math.NaN(), math.NaN()
	}
	half := 0.98 * math.Sqrt(float64(n))
	lo := max(0, int(math.Floor(float64(n)/2-half)))
	hi := min(n-1, int(math.Ceil(float64(n)/2+half))-1)
	return (s[(n-1)/2] + s[n/2]) / 2, s[lo], s[max(hi, lo)]
}
