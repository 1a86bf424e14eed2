// Package leftover tells what a process has left behind: for tests that start jobs, and end them in every way.
package leftover

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// A Count is how much a process has.
type Count struct{ goroutines, files int }

// Now is how much this process has now.
func Now() Count {
	n, _ := goroutines()
	return Count{n, Files()}
}

// goroutines is how many there are, and where they are; without those that bear the flags of a
// process's end, which stay, and the one that a process has once, for as long as the kernel takes
// to register its fence: seconds, where many processes run.
func goroutines() (n int, stacks string) {
	all := make([]byte, 1<<20)
	stacks = string(all[:runtime.Stack(all, true)])
	return strings.Count(stacks, "\n\ngoroutine ") - strings.Count(stacks, "(*bearer).keepWatch(") -
		strings.Count(stacks, "ordered.registerFence("), stacks
}

// Files is how many files this process has open; 0 where that cannot be known.
func Files() int {
	list, _ := os.ReadDir("/proc/self/fd")
	return len(list)
}

// Beyond says what there is beyond c, and mappings of a job's memory; "" if nothing is. What ends
// by itself has two seconds.
func (c Count) Beyond() (text string) {
	for range 200 {
		text = ""
		if n, stacks := goroutines(); n > c.goroutines {
			text += fmt.Sprintf("%d goroutines, %d before: %s", n, c.goroutines, stacks)
		}
		if n := Files(); n > c.files {
			text += fmt.Sprintf("%d files, %d before", n, c.files)
		}
		if maps, _ := os.ReadFile("/proc/self/maps"); strings.Contains(string(maps), "memfd:goccl") {
			text += "shared memory is still mapped"
		}
		if text == "" {
			return ""
		}
		time.Sleep(10 * time.Millisecond)
	}
	return text
}
