// Package program builds and runs what a main package's tests test: the program.
package program

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/cache"
)

// Build builds the program of the working directory, which is the package's in tests, with these tags, and with cgo if there
// are any. It returns the program's path.
func Build(tb testing.TB, tags ...string) string {
	tb.Helper()
	cache.Whole()
	path := filepath.Join(tb.TempDir(), "program.exe")
	cmd := exec.Command("go", "build", "-tags", strings.Join(tags, ","), "-o", path, ".")
	if len(tags) > 0 {
		cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return path
}

// Ranks runs a program as n ranks, which must succeed, and returns what they write.
func Ranks(tb testing.TB, path string, n int, args ...string) (stdout, stderr string) {
	tb.Helper()
	var out, errs bytes.Buffer
	if err := boot.Spawn(tb.Context(), boot.Command{N: n, Path: path, Args: args, Stdout: &out, Stderr: &errs}); err != nil {
		tb.Fatalf("%d ranks of %s: %v\n%s%s", n, path, err, &out, &errs)
	}
	return out.String(), errs.String()
}
