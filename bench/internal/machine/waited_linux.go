package machine

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Waited is how long the threads of this process have run, and how long they were ready to run and had no processor.
// It reads both below root, which is "/". It is 0, 0 if the kernel does not count them.
func Waited(root string) (ran, waited time.Duration) {
	files, _ := filepath.Glob(filepath.Join(root, "proc/self/task/*/schedstat"))
	for _, name := range files {
		var run, wait int64
		b, _ := os.ReadFile(name) // the thread may be gone
		if n, _ := fmt.Sscan(string(b), &run, &wait); n == 2 {
			ran += time.Duration(run)
			waited += time.Duration(wait)
		}
	}
	return ran, waited
}
