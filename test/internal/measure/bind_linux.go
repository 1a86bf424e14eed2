package measure

import (
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Bind keeps this process on the core of its place on the host, as the MPIs do, where there is one for each.
func Bind(local, locals int) {
	n := runtime.NumCPU()
	if locals > n {
		return
	}
	var set unix.CPUSet
	set.Set(local)
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	for _, t := range tasks { // threads made later inherit it
		if id, err := strconv.Atoi(t.Name()); err == nil {
			_ = unix.SchedSetaffinity(id, &set)
		}
	}
}
