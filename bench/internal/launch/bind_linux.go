package launch

import (
	"fmt"
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/bench/internal/machine"
)

// bindTo binds all threads of this process to the i-th of n cores.
func bindTo(i, n int) error {
	var allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &allowed); err != nil {
		return fmt.Errorf("asking which cores this rank may use: %w", err)
	}
	cores := spread(allowed, "/sys/devices/system/cpu")
	if n > len(cores) {
		return nil
	}
	var one unix.CPUSet
	one.Set(cores[i])
	// Threads started meanwhile inherit from one that is bound or not: look again until
	// there is no new one.
	for done := map[int]bool{}; ; {
		before := len(done)
		tasks, err := os.ReadDir("/proc/self/task")
		if err != nil {
			return fmt.Errorf("listing this rank's threads, to bind them: %w", err)
		}
		for _, t := range tasks {
			tid, _ := strconv.Atoi(t.Name())
			if done[tid] {
				continue
			}
			if err := unix.SchedSetaffinity(tid, &one); err != nil && err != unix.ESRCH {
				return fmt.Errorf("binding this rank to core %d: %w", cores[i], err)
			}
			done[tid] = true
		}
		if len(done) == before {
			return nil
		}
	}
}

// spread is the CPUs of a set in the order in which ranks should get them: one thread
// of each core first, then the cores' other threads.
func spread(set unix.CPUSet, sys string) (cpus []int) {
	const most = 1024 // bits of a CPUSet
	var others []int
	seen := map[string]bool{}
	for cpu := range most {
		if !set.IsSet(cpu) {
			continue
		}
		core := machine.Word(sys, "cpu"+strconv.Itoa(cpu)+"/topology/thread_siblings_list")
		if core != "" && seen[core] {
			others = append(others, cpu)
			continue
		}
		seen[core] = true
		cpus = append(cpus, cpu)
	}
	return slices.Concat(cpus, others)
}
