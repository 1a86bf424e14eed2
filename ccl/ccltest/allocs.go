package ccltest

import (
	"testing"

	"github.com/goccl/goccl/ccl"
)

// Allocs returns how often a step that all ranks make allocates memory in the process of rank 0,
// and 0 on the other ranks. It runs step a few times before it counts, so that what is made once is
// there, and then three times runs times: the least count is returned, since other goroutines of
// the process may have had something to do. All ranks call it with the same runs.
func Allocs(t testing.TB, c *ccl.Comm, runs int, step func()) (least float64) {
	t.Helper()
	for range 3 {
		step()
	}
	for try := range 3 {
		if err := ccl.Barrier(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if c.Rank() == 0 {
			if n := testing.AllocsPerRun(runs, step); try == 0 || n < least {
				least = n
			}
			continue
		}
		for range runs + 1 { // AllocsPerRun makes one more
			step()
		}
	}
	return least
}
