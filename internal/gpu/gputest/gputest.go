// Package gputest gives tests a CUDA and a HIP runtime: the fake one of test/fake or, with GOCCL_TEST_GPU=1, the
// machine's own.
package gputest

import (
	"os"
	"testing"

	"github.com/goccl/goccl/test/fake"
)

// Real reports whether tests run on the machine's own devices.
func Real() bool { return os.Getenv("GOCCL_TEST_GPU") == "1" }

// Use lets this process find the runtimes. What the process has loaded before stays loaded.
func Use(tb testing.TB) {
	tb.Helper()
	if !Real() {
		fake.Use(tb)
	}
}

// Fake skips a test that only the fake can run, and says why; else it is Use.
func Fake(tb testing.TB, why string) {
	tb.Helper()
	if Real() {
		tb.Skip("hardware: " + why)
	}
	fake.Use(tb)
}
