package main

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// measured are the numbers of an output that differ from machine to machine and run to run.
var measured = regexp.MustCompile(`\b(dt[fbocx]?|tps|mfu)=[0-9.]+|\d+ GFLOP/s|in [0-9.]+ s: \d+ tokens/s|communication [0-9.]+ %|\d+ MB resident|-\d+ after [0-9.]+ s` +
	`|steps? \d+.* lost$|^\d+ steps, \d+ tokens`)

var lossOf = regexp.MustCompile(`loss=([0-9.]+)`)

// alike reports whether a line of a program is one of the tutorial, but for what is measured.
func alike(want, got string) bool {
	bare := func(s string) string { return lossOf.ReplaceAllString(measured.ReplaceAllString(s, "#"), "loss") }
	a, b := lossOf.FindStringSubmatch(want), lossOf.FindStringSubmatch(got)
	if bare(want) != bare(got) || (a == nil) != (b == nil) {
		return false
	}
	if a == nil {
		return true
	}
	x, err := strconv.ParseFloat(a[1], 64)
	y, err2 := strconv.ParseFloat(b[1], 64)
	return errors.Join(err, err2) == nil && math.Abs(x-y) < 2e-3
}

// Each command of docs/training.md prints what stands there.
func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: seven runs of gpt")
	}
	text, err := os.ReadFile("../../docs/training.md")
	require.NoError(t, err)
	_, tutorial, found := strings.Cut(string(text), "\n## A tutorial\n")
	require.True(t, found)
	var commands []string
	var outputs [][]string
	for line := range strings.Lines(tutorial) {
		line, shown := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if command, ok := strings.CutPrefix(line, "$ "); shown && ok {
			commands, outputs = append(commands, command), append(outputs, nil)
		} else if shown {
			outputs[len(outputs)-1] = append(outputs[len(outputs)-1], line)
		}
	}
	require.GreaterOrEqual(t, len(commands), 7)
	dir := t.TempDir()
	for i, command := range commands {
		var got []string
		if args, ok := strings.CutPrefix(command, "gpt "); ok {
			got = strings.Split(strings.TrimSpace(tutored(t, dir, args)), "\n")
		} else {
			name, ok := strings.CutPrefix(command, "ls ")
			require.True(t, ok, command)
			es, err := os.ReadDir(filepath.Join(dir, name))
			require.NoError(t, err)
			var names []string
			for _, e := range es {
				names = append(names, e.Name())
			}
			got = []string{strings.Join(names, "  ")}
		}
		at, gap := 0, false
		for _, want := range outputs[i] {
			if want == "..." {
				gap = true
				continue
			}
			for gap && at < len(got) && !alike(want, got[at]) {
				at++
			}
			require.Less(t, at, len(got), "%s: %q is not in\n%s", command, want, strings.Join(got, "\n"))
			require.True(t, alike(want, got[at]), "%s\nwant %s\ngot  %s", command, want, got[at])
			at, gap = at+1, false
		}
		require.True(t, gap || at == len(got), "%s: more than the tutorial shows:\n%s", command, strings.Join(got[at:], "\n"))
	}
}

// tutored runs the program in dir; with -recover it kills rank 3 after step 10.
func tutored(t *testing.T, dir, args string) string {
	cmd, out := program(t, args)
	cmd.Dir = dir
	require.NoError(t, cmd.Start())
	if strings.Contains(args, "-recover") {
		until(t, out, "step=10 ")
		kill(t, cmd, 4, 3)
	}
	if err := cmd.Wait(); err != nil {
		exits(t, 2, err, out)
	}
	return out.String()
}
