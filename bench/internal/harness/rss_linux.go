package harness

import (
	"bytes"
	"os"
	"strconv"
)

// resident is the memory that this process takes, in bytes.
func resident() int {
	b, _ := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(b); len(fields) > 1 {
		pages, _ := strconv.Atoi(string(fields[1]))
		return pages * os.Getpagesize()
	}
	return 0
}
