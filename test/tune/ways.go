package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/test/internal/measure"
)

// A reading is one operation at one size on one host: how long it takes reading the other ranks' memory, over
// staging, round by round.
type reading struct {
	op             string
	bytes, fetched int // of the vector; those that a rank fetches from another
	staged, read   []float64
}

// isStaged reports whether it is staged either way.
func (r *reading) isStaged(present map[string]int) bool {
	switch r.op {
	case "allreduce":
		return r.bytes < present["ReadTwoFrom"]
	case "broadcast":
		return r.fetched < present["ReadRootFrom"] || r.fetched > present["ReadRootTo"]
	}
	return r.fetched < present["ReadFrom"]
}

func (r *reading) ratio() (mid, low, high float64) {
	return measure.Median(measure.Ratios(r.read, r.staged))
}

// waysOfOneHost measures staging against reading the memory of other processes, two ranks on one host.
func (o *options) waysOfOneHost(w io.Writer) error {
	present, err := presentWays()
	if err != nil {
		return err
	}
	const ranks = 2
	var all []*reading
	for _, op := range []string{"allreduce", "broadcast", "allgather", "alltoall"} {
		at := map[int]*reading{}
		err := o.inTurn(ranks, 0, op, 2, func(i int) []string {
			return []string{"GOCCL_SHM_READ=" + strconv.Itoa(i)}
		}, func(i, size int, us float64) {
			r := at[size]
			if r == nil {
				r = &reading{op: op, bytes: size, fetched: size}
				if op == "allgather" || op == "alltoall" {
					r.fetched /= ranks
				}
				at[size] = r
			}
			if i == 0 {
				r.staged = append(r.staged, us)
			} else {
				r.read = append(r.read, us)
			}
		})
		if err != nil {
			return err
		}
		for _, size := range slices.Sorted(maps.Keys(at)) {
			all = append(all, at[size])
		}
	}
	fmt.Fprintf(w, "\n%-12s %10s %12s %12s  %s\n", "one host", "bytes", "staged us", "read us", "ratio and its 95 % interval")
	for _, r := range all {
		if r.isStaged(present) {
			continue
		}
		s, _, _ := measure.Median(r.staged)
		us, _, _ := measure.Median(r.read)
		mid, low, high := r.ratio()
		fmt.Fprintf(w, "%-12s %10d %12.2f %12.2f  %.2f %.2f..%.2f\n", r.op, r.bytes, s, us, mid, low, high)
	}
	proposed := fitWays(all, present)
	fmt.Fprintln(w, "\nccl/internal/tuning/tuning.go:")
	for _, name := range []string{"ReadFrom", "ReadHalvesTo"} {
		if was, is := present[name], proposed[name]; was == is {
			fmt.Fprintf(w, "  %s = %s\n", name, shifted(was))
		} else {
			fmt.Fprintf(w, "- %s = %s\n+ %s = %s\n", name, shifted(was), name, shifted(is))
		}
	}
	return nil
}

// fitWays are the bounds between which reading costs least. Only what GOCCL_SHM_READ turns on can be measured: a
// bound moves within those of the present, and comes out as never or 0 where reading does not pay.
func fitWays(all []*reading, present map[string]int) map[string]int {
	var from, to []*reading
	for _, r := range all {
		switch {
		case r.isStaged(present):
		case r.op != "allreduce":
			from = append(from, r)
		case r.bytes <= present["ReadHalvesTo"]:
			to = append(to, r)
		}
	}
	slices.SortFunc(from, func(a, b *reading) int { return cmp.Compare(b.fetched, a.fetched) })
	slices.SortFunc(to, func(a, b *reading) int { return cmp.Compare(a.bytes, b.bytes) })
	proposed := map[string]int{
		"ReadFrom":     best(from, present["ReadFrom"], math.MaxInt, func(r *reading) int { return r.fetched }),
		"ReadHalvesTo": best(to, present["ReadHalvesTo"], 0, func(r *reading) int { return r.bytes }),
	}
	return proposed
}

// best is how far, from the first of list on, reading is to go so as to cost least, as bound tells: none if nowhere,
// and present if all of it is as good, or there is nothing to tell by.
func best(list []*reading, present, none int, bound func(*reading) int) int {
	if len(list) == 0 {
		return present
	}
	sum, least, at := 0.0, 0.0, none
	for i, r := range list {
		mid, _, _ := r.ratio()
		sum += math.Log(mid)
		if last := i == len(list)-1; last && sum <= least+gain {
			at = present
		} else if (last || bound(list[i+1]) != bound(r)) && sum < least {
			least, at = sum, bound(r)
		}
	}
	return at
}

// presentWays are the sizes in tuning.go.
func presentWays() (map[string]int, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/goccl/goccl/ccl/internal/tuning").Output()
	if err != nil {
		return nil, errors.New("run this inside the repository: the present sizes are read from there")
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "tuning.go"))
	if err != nil {
		return nil, err
	}
	ways := map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+)\s*= (\d+) << (\d+)`).FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(m[2])
		shift, _ := strconv.Atoi(m[3])
		ways[m[1]] = n << shift
	}
	for _, name := range []string{"ReadFrom", "ReadRootFrom", "ReadRootTo", "ReadTwoFrom", "ReadHalvesTo"} {
		if ways[name] == 0 {
			return nil, fmt.Errorf("tuning.go says nothing of %s", name)
		}
	}
	return ways, nil
}

// shifted is v as tuning.go has it.
func shifted(v int) string {
	switch {
	case v == math.MaxInt:
		return "math.MaxInt // reading does not pay"
	case v == 0:
		return "0 // reading does not pay"
	case v%(1<<20) == 0:
		return fmt.Sprintf("%d << 20", v>>20)
	case v%(1<<10) == 0:
		return fmt.Sprintf("%d << 10", v>>10)
	}
	return strconv.Itoa(v)
}
