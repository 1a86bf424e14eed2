// Package compare says whether one run is slower than another: of two programs that
// it starts itself in turns (ab), or of runs that were stored (compare).
//
// A run, which is one launch of the ranks, is one sample. The iterations within one
// share their placement, their memory and what else the machine is doing, so a
// thousand of them tell nothing about the next launch.
package compare

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/stat"
)

// key names one half of a line, whatever run it is of.
type key struct {
	op, typ, redop, backend string
	size, root              int
	inPlace                 bool
}

func (k key) String() string {
	place := "out of place"
	if k.inPlace {
		place = "in place"
	}
	return fmt.Sprintf("%s %s %s, %d bytes, %s", k.op, k.typ, k.redop, k.size, place)
}

// run is the logarithms of one run's times: of the middle iteration where that is
// known, since a busy machine disturbs it least, else of the mean.
type run map[key]float64

// runOf takes the times out of a file, of several cycles their middle.
func runOf(f *report.File) run {
	cycles := map[key][]float64{}
	for _, r := range f.Results {
		for i, half := range r.Halves() {
			if us := half.Typical(); us > 0 {
				k := key{op: r.Op, typ: r.Type, redop: r.Redop, backend: r.Backend, size: r.Size, root: r.Root, inPlace: i == 1}
				cycles[k] = append(cycles[k], math.Log(us))
			}
		}
	}
	all := run{}
	for k, logs := range cycles {
		all[k] = stat.Median(logs)
	}
	return all
}

// common are the halves of lines that all runs have, in the order of operation and size.
func common(runs ...run) []key {
	var keys []key
	for k := range runs[0] {
		if !slices.ContainsFunc(runs, func(r run) bool { _, has := r[k]; return !has }) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.op == b.op && a.size != b.size {
			return a.size - b.size
		}
		return strings.Compare(a.String(), b.String())
	})
	return keys
}

// ratio is the middle of the lines' changes between two runs, as a logarithm.
func ratio(old, new run, keys []key) float64 {
	var d []float64
	for _, k := range keys {
		d = append(d, new[k]-old[k])
	}
	return stat.Median(d)
}

// percent writes a logarithm of a ratio of times as people say it.
func percent(log float64) string {
	p := 100 * math.Expm1(log)
	switch {
	case math.IsInf(log, 1):
		return "any slowdown"
	case math.IsInf(log, -1):
		return "any speed-up"
	case math.Abs(p) < 0.05:
		return "0.0 %"
	}
	return fmt.Sprintf("%+.1f %%", p)
}
