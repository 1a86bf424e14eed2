// Package program builds and runs what a main package's tests test: the program.
package program

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/test/cache"
)

// Build builds the program of the working directory, which is the package's in tests, with these
// tags, and with cgo if there are any. It returns the program's path.
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
	if err := boot.Spawn(tb.Context(),
		boot.Command{N: n, Path: path, Args: args, Stdout: &out, Stderr: &errs}); err != nil {
		tb.Fatalf("%d ranks of %s: %v\n%s%s", n, path, err, &out, &errs)
	}
	return out.String(), errs.String()
}

// Itself runs c as ranks of the running test's own program, or of c's, that run the test with that
// name, "" none, with these variables. It returns what they write and how they end, which may be by
// the test's own doing, and fails tb where they go on for longer than limit.
func Itself(tb testing.TB, limit time.Duration, c boot.Command, test string, env ...string) (string, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	var out bytes.Buffer
	c.Path = cmp.Or(c.Path, os.Args[0])
	c.Args, c.Env = []string{"-test.run=^" + test + "$"}, append(append(os.Environ(), "GORACE=atexit_sleep_ms=0"), env...)
	c.Stdout = &out
	if c.Stderr == nil {
		c.Stderr = &out
	}
	err := boot.Spawn(ctx, c)
	if ctx.Err() != nil {
		tb.Fatalf("ranks go on for longer than %v: %v\n%s", limit, err, &out)
	}
	return out.String(), err
}

// Figures are those that ranks write, each behind its name, by the name.
func Figures(tb testing.TB, text string) map[string][]int64 {
	tb.Helper()
	figures := map[string][]int64{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		for i := 0; i+1 < len(f); i += 2 {
			v, err := strconv.ParseInt(f[i+1], 10, 64)
			if err != nil {
				tb.Fatalf("%q has no figures: %v", line, err)
			}
			figures[f[i]] = append(figures[f[i]], v)
		}
	}
	return figures
}

// KiB is a figure in kB of a file of /proc, 0 where there is none.
func KiB(file, name string) int64 {
	text, _ := os.ReadFile(file)
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
}

// Total is the sum of figures.
func Total(v []int64) (s int64) {
	for _, x := range v {
		s += x
	}
	return s
}

// FreePort is a port of 127.0.0.1 that is free, for a program that takes no listener. It is below
// those that the kernel gives to programs that ask for any (32768 and more on Linux): one of these
// would soon be somebody else's.
func FreePort(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		port := strconv.Itoa(15_000 + rand.IntN(15_000))
		if l, err := net.Listen("tcp", "127.0.0.1:"+port); err == nil {
			l.Close()
			return port
		}
	}
	tb.Fatal("100 ports are taken")
	return ""
}
