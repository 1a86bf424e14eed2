// Package slurm reads the lists that Slurm gives its jobs in variables.
package slurm

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/plain"
)

// counts is an item of a list for nodes: a count, and for how many nodes in a row it is.
var counts = regexp.MustCompile(`^(\d+)(?:\(x(\d+)\))?$`)

// OnNode reads what a list such as 2(x3),1 says of one node: of its tasks, or its cores.
func OnNode(list string, node int) (int, bool) {
	if node < 0 {
		return 0, false
	}
	for item := range strings.SplitSeq(list, ",") {
		m := counts.FindStringSubmatch(item)
		if m == nil {
			return 0, false
		}
		n, err := strconv.Atoi(m[1])
		k, err2 := strconv.Atoi(cmp.Or(m[2], "1"))
		switch {
		case err != nil || err2 != nil || k < 1:
			return 0, false
		case node < k:
			return n, true
		}
		node -= k
	}
	return 0, false
}

// What a host list may stand for, lest a short one fills the memory.
const (
	maxHosts = 1 << 17
	maxName  = 255
)

// itemAt is the first item of a host list. A comma within brackets does not end it.
var itemAt = regexp.MustCompile(`^(?:[^][,]|\[[^][]*\])*`)

// Hosts expands a host list: n[1-3,07],m2 or r[1-2]n[1-4]-ib.
func Hosts(list string) (hosts []string, err error) {
	for more := list != ""; more; {
		item := itemAt.FindString(list)
		rest := list[len(item):]
		if list, more = strings.CutPrefix(rest, ","); rest != "" && !more {
			return nil, fmt.Errorf("host list %s: its brackets do not match", plain.Clip(item+rest))
		}
		names, err := expand(item)
		if err != nil {
			return nil, err
		}
		if hosts = append(hosts, names...); len(hosts) > maxHosts {
			return nil, fmt.Errorf("host list %s: more than %d hosts", plain.Clip(item+rest), maxHosts)
		}
	}
	return hosts, nil
}

// expand writes out the ranges of one item, whose brackets match, the last varying fastest.
func expand(item string) ([]string, error) {
	prefix, rest, ranged := strings.Cut(item, "[")
	if !ranged {
		if item == "" {
			return nil, fmt.Errorf("host list: %s is not a host name", plain.Clip(item))
		}
		return []string{item}, nil
	}
	ranges, suffix, _ := strings.Cut(rest, "]")
	tails := []string{""}
	if suffix != "" {
		var err error
		if tails, err = expand(suffix); err != nil {
			return nil, err
		}
	}
	var hosts []string
	for r := range strings.SplitSeq(ranges, ",") {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 32)
		to, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || from > to || (to-from+1)*uint64(len(tails)) > maxHosts {
			return nil, fmt.Errorf("host list %s: %s is not a range", plain.Clip(item), plain.Clip(r))
		}
		for n := from; n <= to; n++ {
			digits := fmt.Sprintf("%0*d", min(len(first), maxName), n)
			for _, t := range tails {
				if len(prefix)+len(digits)+len(t) > maxName {
					return nil, fmt.Errorf("host list %s: a host's name has at most %d bytes", plain.Clip(item), maxName)
				}
				hosts = append(hosts, prefix+digits+t)
			}
		}
		if len(hosts) > maxHosts {
			return nil, fmt.Errorf("host list %s: more than %d hosts", plain.Clip(item), maxHosts)
		}
	}
	return hosts, nil
}
