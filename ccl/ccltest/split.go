package ccltest

import (
	"testing"

	"github.com/goccl/goccl/ccl"
)

// Split is c.Split for a test, which fails where that does. What it returns is closed when the test
// of its rank ends, unless the test has closed it; it is nil for a negative color.
func Split(t testing.TB, c *ccl.Comm, color, key int) *ccl.Comm {
	t.Helper()
	part, err := c.Split(t.Context(), color, key)
	if err != nil {
		t.Fatal(err)
	}
	if part != nil {
		t.Cleanup(func() { part.Close() })
	}
	return part
}

// Barrier is ccl.Barrier for a test, which fails where that does.
func Barrier(t testing.TB, c *ccl.Comm) {
	t.Helper()
	if err := ccl.Barrier(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}
