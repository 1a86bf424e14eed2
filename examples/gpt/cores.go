package main

import (
	"context"
	"math/bits"
	"os"
	"runtime"
	"strconv"
	"strings"

	"github.com/goccl/goccl/ccl"
)

// cpus are the processors that a process may run on, a bit each.
type cpus [16]uint64

// lowest are n processors from the first on.
func lowest(n int) (set cpus) {
	for i := range min(n, 64*len(set)) {
		set[i/64] |= 1 << (i % 64)
	}
	return set
}

// allowed are the cpus of this process; without Linux as many as Go counts.
func allowed() cpus {
	status, err := os.ReadFile("/proc/self/status")
	if set, ok := listed(string(status)); ok && err == nil {
		return set
	}
	return lowest(runtime.NumCPU())
}

// listed reads the line "Cpus_allowed: ff,00000003", in which each word of 32 bits is in
// hexadecimal, the highest first.
func listed(status string) (set cpus, ok bool) {
	_, line, found := strings.Cut(status, "\nCpus_allowed:")
	line, _, _ = strings.Cut(line, "\n")
	words := strings.Split(strings.TrimSpace(line), ",")
	for i, word := range words {
		x, err := strconv.ParseUint(word, 16, 32)
		at := len(words) - 1 - i
		if err != nil || at/2 >= len(set) && x != 0 {
			return cpus{}, false
		}
		if x != 0 {
			set[at/2] |= x << (32 * (at % 2))
		}
	}
	return set, found && set != cpus{}
}

// cores is how many cores the ranks of world compute on: one each, and on a host no more than its
// ranks may run on together. It is collective.
func cores(ctx context.Context, world *ccl.Comm) (int, error) {
	set := allowed()
	mine := append([]uint64{uint64(world.Place().Node)}, set[:]...)
	all := make([]uint64, len(mine)*world.Size())
	if err := ccl.AllGather(ctx, world, all, mine); err != nil {
		return 0, err
	}
	return together(all), nil
}

// together is cores by what each rank says: the number of its host, and its cpus.
func together(all []uint64) (sum int) {
	ranks, of := map[uint64]int{}, map[uint64]cpus{}
	each := 1 + len(cpus{})
	for ; len(all) >= each; all = all[each:] {
		set := of[all[0]]
		for i, x := range all[1:each] {
			set[i] |= x
		}
		of[all[0]] = set
		ranks[all[0]]++
	}
	for host, set := range of {
		n := 0
		for _, x := range set {
			n += bits.OnesCount64(x)
		}
		sum += min(ranks[host], n)
	}
	return sum
}
