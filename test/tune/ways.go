package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/test/internal/measure"
)

// The ways of one host are what GOCCL_SHM_READ says: to read the memory of the other ranks, or to stage.
const (
	staged = "0"
	read   = "1"
)

// fetched is how many bytes a rank fetches from another.
func (p *point) fetched() int {
	if p.kind == op.AllGather || p.kind == op.AllToAll {
		return p.bytes / p.l.ranks()
	}
	return p.bytes
}

// isStaged reports whether it is staged either way.
func (p *point) isStaged(present map[string]int) bool {
	switch p.kind {
	case op.AllReduce:
		return p.bytes < present["ReadTwoFrom"]
	case op.Broadcast:
		return p.fetched() < present["ReadRootFrom"] || p.fetched() > present["ReadRootTo"]
	}
	return p.fetched() < present["ReadFrom"]
}

// waysOfOneHost measures staging against reading the memory of other processes, two ranks on one host.
func (o *options) waysOfOneHost(w io.Writer) error {
	present, err := presentWays()
	if err != nil {
		return err
	}
	var all []*point
	for _, k := range []op.Kind{op.AllReduce, op.Broadcast, op.AllGather, op.AllToAll} {
		points, err := o.inTurn(k, layout{1, 2}, []string{staged, read},
			func(way string) string { return "GOCCL_SHM_READ=" + way })
		if err != nil {
			return err
		}
		all = append(all, points...)
	}
	fmt.Fprintf(w, "\n%-12s %10s %12s %12s  %s\n", "one host", "bytes", "staged us", "read us",
		"ratio and its 95 % interval")
	for _, p := range all {
		if p.isStaged(present) {
			continue
		}
		s, _, _ := measure.Median(p.us[staged])
		us, _, _ := measure.Median(p.us[read])
		mid, low, high := p.slower(read, staged)
		fmt.Fprintf(w, "%-12s %10d %12.2f %12.2f  %.2f %.2f..%.2f\n", operation(p.kind), p.bytes, s, us, mid, low, high)
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
func fitWays(all []*point, present map[string]int) map[string]int {
	var from, to []*point
	for _, p := range all {
		switch {
		case p.isStaged(present):
		case p.kind != op.AllReduce:
			from = append(from, p)
		case p.bytes <= present["ReadHalvesTo"]:
			to = append(to, p)
		}
	}
	slices.SortFunc(from, func(a, b *point) int { return cmp.Compare(b.fetched(), a.fetched()) })
	slices.SortFunc(to, func(a, b *point) int { return cmp.Compare(a.bytes, b.bytes) })
	return map[string]int{
		"ReadFrom":     best(from, present["ReadFrom"], math.MaxInt),
		"ReadHalvesTo": best(to, present["ReadHalvesTo"], 0),
	}
}

// best is how far, from the first of list on, reading is to go so as to cost least, in bytes that a
// rank fetches: none if nowhere, and present if all of it is as good, or there is nothing to tell
// by.
func best(list []*point, present, none int) int {
	if len(list) == 0 {
		return present
	}
	sum, least, at := 0.0, 0.0, none
	for i, p := range list {
		mid, _, _ := p.slower(read, staged)
		sum += math.Log(mid)
		if last := i == len(list)-1; last && sum <= least+gain {
			at = present
		} else if (last || list[i+1].fetched() != p.fetched()) && sum < least {
			least, at = sum, p.fetched()
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
