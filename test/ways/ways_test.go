package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/test/cache"
	"github.com/goccl/goccl/test/program"
)

// most is what the way of a call may take: functions, files and packages. It may only shrink: a change that shortens a way lowers it.
type most [3]int

// What no function on the way of a call exceeds.
const (
	linesMost    = 60
	branchesMost = 15
)

// TestWays counts the ways of a blocking AllReduce of 4 KiB between two processes: without a wait, and with one.
func TestWays(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds a program with counters in it")
	}
	path, dir := build(t), t.TempDir()
	plan, _ := program.Ranks(t, path, 2, "blocking", dir)
	if !strings.HasPrefix(plan, "inline") {
		t.Skip("hardware: 4 KiB go another way between processes on this processor: " + plan)
	}
	seen := readWays(t, dir)
	shortest(t, seen, way.goesOn).check(t, most{45, 18, 8})
	if runtime.NumCPU() < 2 {
		t.Skip("hardware: ranks share a processor")
	}
	// Where other programs compute on the cores of the ranks, a wait finds that out, and may end no other way.
	if w := shortest(t, seen, way.waits); w.isCrowded() {
		w.check(t, most{54, 24, 11})
	} else {
		w.check(t, most{52, 21, 9})
	}
}

// build builds this program with counters in all packages of the module.
func build(t *testing.T, flags ...string) string {
	path := filepath.Join(t.TempDir(), "ways.exe")
	cache.Whole()
	cmd := exec.Command("go", append([]string{"build", "-cover", "-covermode", "atomic", "-coverpkg", module + "...", "-o", path}, append(flags, ".")...)...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v\n%s", cmd, out)
	return path
}

// readWays returns the ways that a program has written into folders of dir.
func readWays(t *testing.T, dir string) (seen []way) {
	folders, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range folders {
		folder := filepath.Join(dir, f.Name())
		profile := filepath.Join(folder, "profile")
		out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i", folder, "-o", profile).CombinedOutput()
		require.NoError(t, err, "%s", out)
		text, err := os.ReadFile(profile)
		require.NoError(t, err)
		w, err := readWay(bytes.NewReader(text), "../..")
		require.NoError(t, err)
		seen = append(seen, w)
	}
	return seen
}

// shortest returns the one that passes the fewest functions, of those that are of a kind.
func shortest(t *testing.T, seen []way, kind func(way) bool) (least way) {
	t.Helper()
	for _, w := range seen {
		if kind(w) && (least == nil || len(w) < len(least)) {
			least = w
		}
	}
	require.NotNil(t, least, "%d ways, none of which is of that kind", len(seen))
	return least
}

// waits reports whether the rank has waited for another one: see Pause of package plane.
func (w way) waits() bool { return w.passes("Pause") }

func (w way) goesOn() bool { return !w.waits() }

// isCrowded reports whether that wait has looked at what other programs do on its core: see Abrupt.
func (w way) isCrowded() bool { return w.passes("CanPark") }

func (w way) passes(name string) bool {
	return slices.ContainsFunc(w, func(f function) bool { return strings.HasPrefix(f.file, "ccl/internal/plane/") && f.name == name })
}

// check compares a way with the most that it may take, and its functions with the limits of one function.
func (w way) check(t *testing.T, limit most) {
	t.Logf("%v functions, files and packages\n%v", w.count(), w)
	for i, n := range w.count() {
		assert.LessOrEqual(t, n, limit[i], "%s on the way of a call", []string{"functions", "files", "packages"}[i])
	}
	for _, f := range w {
		assert.LessOrEqual(t, f.lines, linesMost, "lines of %v", &f)
		assert.LessOrEqual(t, f.branches, branchesMost, "branches of %v", &f)
	}
}
