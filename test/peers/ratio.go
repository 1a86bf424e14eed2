package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/test/internal/measure"
)

// result is what the rounds of a case have given.
type result struct {
	c      *testCase
	ours   map[measure.Key][]float64
	best   map[measure.Key][]float64 // of all peers, round by round
	limit  map[measure.Key][]float64 // of what limits.c does, where the case asks for it
	who    map[measure.Key]map[string]int
	rounds int
}

// measure runs a case: each round runs every program once, in turn. A contest leaves peers out of later rounds.
func (b *builder) measure(c *testCase, rounds int, target float64) (*result, error) {
	r := &result{c: c, ours: map[measure.Key][]float64{}, best: map[measure.Key][]float64{},
		limit: map[measure.Key][]float64{}, who: map[measure.Key]map[string]int{}, rounds: rounds}
	running := contest{}
	for round := range rounds {
		for _, op := range c.operations() {
			mine := b.time(c.ours, c, op, target)
			if len(mine) == 0 {
				return nil, fmt.Errorf("goccl's own %s did not run", op)
			}
			best, who := map[measure.Key]float64{}, map[measure.Key]string{}
			took := map[string]map[measure.Key]float64{}
			for _, p := range c.against {
				if p.name == "Gloo" && !glooHas(op) || round >= trials && !running.has(op, p.name) {
					continue
				}
				took[p.name] = b.time(p, c, op, target)
				for k, us := range took[p.name] {
					if old, ok := best[k]; !ok || us < old {
						best[k], who[k] = us, p.name
					}
				}
			}
			for peer, times := range took {
				running.note(op, peer, times, best)
			}
			for k, us := range b.limitsOf(c, op, target) {
				r.limit[k] = append(r.limit[k], us)
			}
			for k, us := range mine {
				if other, ok := best[k]; ok {
					r.ours[k], r.best[k] = append(r.ours[k], us), append(r.best[k], other)
					if r.who[k] == nil {
						r.who[k] = map[string]int{}
					}
					r.who[k][who[k]]++
				}
			}
		}
	}
	return r, nil
}

// limitsOf is what limits.c takes for op, of 2 to 64 MiB, where the case asks for it.
func (b *builder) limitsOf(c *testCase, op string, target float64) map[measure.Key]float64 {
	large, ok := c.large()
	if !ok || !limited(op) {
		return nil
	}
	return b.time(limits, &large, op, target)
}

// large is c of the sizes whose limit is measured.
func (c *testCase) large() (testCase, bool) {
	large := *c
	for large.min < limitFrom && large.min < c.max {
		large.min = min(large.min*c.factor, c.max)
	}
	large.max = min(c.max, limitTo)
	return large, c.limit && large.min >= limitFrom && large.min <= large.max
}

const limitFrom, limitTo = 2 * mib, 64 * mib

// limited reports whether limits.c has op.
func limited(op string) bool { return op != "alltoallv" && op != "barrier" }

// A contest records, for each operation, which peers have been near the best at some size. The
// others cannot become the best, take many times as long, and run in the first rounds only.
type contest map[string]map[string]bool

const (
	trials = 3   // rounds in which all peers run
	near   = 1.5 // times the best time
)

// has reports whether a peer still runs. A peer that has not given a time yet does.
func (c contest) has(op, peer string) bool {
	been, known := c[op][peer]
	return been || !known
}

// note records what a peer took in a round.
func (c contest) note(op, peer string, took, best map[measure.Key]float64) {
	if c[op] == nil {
		c[op] = map[string]bool{}
	}
	for k, us := range took {
		c[op][peer] = c[op][peer] || us <= near*best[k]
	}
}

func glooHas(op string) bool {
	return op != "alltoallv" && op != "sendrecv" && op != "barrier"
}

func (r *result) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s; bars: %s\n", r.c.name, r.c.what, r.c.barred())
	unit := "us"
	if r.c.ops == "memory" {
		unit = "KiB"
	}
	fmt.Fprintf(&b, "  %-15s %10s %12s %12s  %-12s %6s %-13s %s%5s\n", "operation", "bytes", "ours "+unit, "best "+unit,
		"of", "ratio", "95 %", r.column("limit"), "bar")
	keys := slices.SortedFunc(maps.Keys(r.ours), func(x, y measure.Key) int {
		return cmp.Or(slices.Index(measure.Operations, x.Op)-slices.Index(measure.Operations, y.Op),
			cmp.Compare(x.Bytes, y.Bytes))
	})
	logs := map[string][][]float64{}
	for _, k := range keys {
		ratios := measure.Ratios(r.ours[k], r.best[k])
		logs[k.Op] = append(logs[k.Op], ratios)
		mid, low, high := measure.Median(ratios)
		ours, _, _ := measure.Median(r.ours[k])
		best, _, _ := measure.Median(r.best[k])
		fmt.Fprintf(&b, "  %-15s %10d %12.2f %12.2f  %-12s %6.2f %-13s %s%s\n", k.Op, k.Bytes, ours, best, most(r.who[k]),
			mid,
			fmt.Sprintf("%.2f..%.2f", low, high), r.column(r.toLimit(k)), r.c.verdict(k.Bytes, low))
	}
	if r.c.geomean > 0 {
		for _, op := range r.c.operations() {
			mid, low, high := measure.Median(geomeans(logs[op]))
			fmt.Fprintf(&b, "  %-15s %10s %12s %12s  %-12s %6.2f %-13s %s%s\n", op, "all", "", "", "", mid,
				fmt.Sprintf("%.2f..%.2f", low, high), r.column(""), against(r.c.geomean, low))
		}
	}
	return b.String()
}

// column is a column that tables have whose case asks for limits.
func (r *result) column(text string) string {
	if !r.c.limit {
		return ""
	}
	return fmt.Sprintf("%5s  ", text)
}

// toLimit is our time divided by that of limits.c, the median over the rounds; "" where that has none.
func (r *result) toLimit(k measure.Key) string {
	if len(r.limit[k]) == 0 {
		return ""
	}
	mid, _, _ := measure.Median(measure.Ratios(r.ours[k], r.limit[k]))
	return fmt.Sprintf("%.2f", mid)
}

// geomeans is the geometric mean over sizes, round by round.
func geomeans(bySize [][]float64) []float64 {
	var means []float64
	for round := 0; ; round++ {
		sum, n := 0.0, 0
		for _, ratios := range bySize {
			if round < len(ratios) {
				sum += math.Log(ratios[round])
				n++
			}
		}
		if n < len(bySize) || n == 0 {
			return means
		}
		means = append(means, math.Exp(sum/float64(n)))
	}
}

func (c *testCase) verdict(bytes int, low float64) string {
	for _, bar := range c.bars {
		if bytes >= bar.from && bytes < 2*bar.to {
			return against(bar.ratio, low)
		}
	}
	return ""
}

// against says whether a bar is missed: if the lower end of the interval exceeds it.
func against(bar, low float64) string {
	if low > bar {
		return fmt.Sprintf("%.2f MISSED", bar)
	}
	return fmt.Sprintf("%.2f", bar)
}

// most is whoever was the best most often.
func most(n map[string]int) string {
	name := ""
	for who, times := range n {
		if times > n[name] || times == n[name] && (name == "" || who < name) {
			name = who
		}
	}
	return name
}

// processor is a line of /proc/cpuinfo by its name; "" where there is none.
func processor(name string) string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if n, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(n) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// maker is who made this machine's CPU, as far as it says: "Intel", "AMD", else the architecture.
func maker() string {
	switch processor("vendor_id") {
	case "GenuineIntel":
		return "Intel"
	case "AuthenticAMD":
		return "AMD"
	}
	return runtime.GOARCH
}

// machine describes where this runs.
func machine() string {
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	return fmt.Sprintf("%s, %d processors, Linux %s, %s", cmp.Or(processor("model name"), runtime.GOARCH),
		runtime.NumCPU(), strings.TrimSpace(string(kernel)), runtime.Version())
}
