package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/goccl/goccl/internal/cores"
	"github.com/goccl/goccl/test/internal/measure"
)

// The parameters of tuning.Lines: how long a cache line takes from one core to another, by what the two share.

// mostPairs are measured of each class: a machine has thousands.
const mostPairs = 8

// shareCores is how many cores it takes to tell what a further reader of a line adds: one writes, and 1 or 3 and more read.
const shareCores = 4

// group is what the cores of a group share.
type group struct{ cache, node, socket int }

func groupOf(p cores.Processor) group { return group{p.Cache, p.Node, p.Socket} }

// pairsOf picks pairs of cores of one group, of two groups of a socket, and of two sockets. Hardware threads of one core make
// no pair.
func pairsOf(all []cores.Processor) (same, other, socket [][2]int) {
	members, sockets := map[group][]int{}, map[int][]group{}
	var order []group
	var inOrder []int
	for _, p := range cores.FirstThreads(all) {
		g := groupOf(p)
		if members[g] == nil {
			order = append(order, g)
			if sockets[g.socket] == nil {
				inOrder = append(inOrder, g.socket)
			}
			sockets[g.socket] = append(sockets[g.socket], g)
		}
		members[g] = append(members[g], p.CPU)
	}
	for _, g := range order {
		if m := members[g]; len(m) > 1 {
			same = append(same, [2]int{m[0], m[len(m)-1]})
		}
	}
	for _, s := range inOrder {
		for i, g := range sockets[s][1:] {
			other = append(other, [2]int{members[sockets[s][i]][0], members[g][0]})
		}
	}
	for i, s := range inOrder[min(1, len(inOrder)):] {
		socket = append(socket, [2]int{members[sockets[inOrder[i]][0]][0], members[sockets[s][0]][0]})
	}
	return few(same), few(other), few(socket)
}

// few keeps mostPairs of a list, spread over all of it.
func few(pairs [][2]int) [][2]int {
	if len(pairs) <= mostPairs {
		return pairs
	}
	var kept [][2]int
	for i := range mostPairs {
		kept = append(kept, pairs[i*len(pairs)/mostPairs])
	}
	return kept
}

// A timing is one parameter: nanoseconds, or why it was not measured.
type timing struct {
	name, what string
	ns         []float64
	why        string
}

// value is what goes into the table.
func (m *timing) value() string {
	if len(m.ns) == 0 {
		return "?"
	}
	mid, _, _ := measure.Median(m.ns)
	return fmt.Sprintf("%.0f", max(mid, 1))
}

// timeLines measures all parameters, so many rounds of each, on the given processors.
func timeLines(all []cores.Processor, rounds int) ([]*timing, error) {
	same, other, socket := pairsOf(all)
	list := []*timing{
		{name: "Same", what: "one group", why: "no group of this machine has two cores"},
		{name: "Other", what: "two groups", why: "no socket of this machine has two groups of cores"},
		{name: "Socket", what: "two sockets", why: "this machine has one socket"},
	}
	for i, pairs := range [][][2]int{same, other, socket} {
		for _, pair := range pairs {
			ns, err := pingPong(pair[0], pair[1], rounds)
			if err != nil {
				return nil, err
			}
			list[i].ns = append(list[i].ns, ns)
		}
	}
	next := &timing{name: "Next", what: "a further line in a row", why: list[0].why}
	for _, pair := range same {
		ns, err := further(pair[0], pair[1], rounds)
		if err != nil {
			return nil, err
		}
		next.ns = append(next.ns, ns)
	}
	first := cores.FirstThreads(all)
	share := &timing{name: "Share", what: "a further reader of a line", why: fmt.Sprintf("it takes %d cores, and %d are here", shareCores, len(first))}
	if len(first) >= shareCores {
		var cpus []int
		for _, p := range first {
			cpus = append(cpus, p.CPU)
		}
		ns, err := sharing(cpus, rounds)
		if err != nil {
			return nil, err
		}
		share.ns = append(share.ns, ns)
	}
	return append(list, next, share), nil
}

// linesOfCores measures and prints them.
func (o *options) linesOfCores(w io.Writer) error {
	all := usable(cores.Read(cores.System))
	if all == nil {
		fmt.Fprintln(w, "\nlines between cores: not measured: the system does not say which cores share what")
		return nil
	}
	list, err := timeLines(all, o.rounds)
	if err != nil {
		fmt.Fprintf(w, "\nlines between cores: not measured: %v\n", err)
		return nil
	}
	printLines(w, list)
	return nil
}

func printLines(w io.Writer, list []*timing) {
	fmt.Fprintf(w, "\n%-28s %6s\n", "lines between cores", "ns")
	row := ""
	for _, m := range list {
		if row != "" {
			row += ", "
		}
		row += m.name + ": " + m.value()
		if len(m.ns) == 0 {
			fmt.Fprintf(w, "%-28s not measured: %s\n", m.what, m.why)
			continue
		}
		fmt.Fprintf(w, "%-28s %6s  %.0f..%.0f on %d pairs\n", m.what, m.value(), slices.Min(m.ns), slices.Max(m.ns), len(m.ns))
	}
	fmt.Fprintf(w, "\nccl/internal/tuning/tuning.go, in this CPU's row; keep what it has for ?:\n  Lines: Lines{%s},\n", row)
}
