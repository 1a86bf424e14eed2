package tutorial

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccl/goccl/test/cache"
	"github.com/stretchr/testify/require"
)

const (
	page      = "../../docs/tutorial.md"
	mostLines = 40 // of a step: those that the step before does not have
)

var (
	heading = regexp.MustCompile(`(?m)^## Step (\d): .*$`)
	block   = regexp.MustCompile("(?s)```(go)?\n(.*?)```")
	stamp   = regexp.MustCompile(`\d{4}/\d\d/\d\d \d\d:\d\d:\d\d `) // of package log
)

// steps are the sections of the page that have a program, in order, after what precedes them.
func steps(t *testing.T) (before string, all []string) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	at := heading.FindAllStringSubmatchIndex(string(text), -1)
	require.Len(t, at, 6)
	for i, m := range at {
		require.Equal(t, strconv.Itoa(i+1), string(text[m[2]:m[3]]))
		end := len(text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		all = append(all, string(text[m[0]:end]))
	}
	return string(text[:at[0][0]]), all
}

// program is the source of a step, counted from 1.
func program(t *testing.T, step int) string {
	text, err := os.ReadFile(filepath.Join(strconv.Itoa(step), "main.go"))
	require.NoError(t, err)
	return string(text)
}

// added are the lines of text that were does not have.
func added(was, text string) (lines []string) {
	left := map[string]int{}
	for _, l := range strings.Split(was, "\n") {
		left[l]++
	}
	for _, l := range strings.Split(text, "\n") {
		if left[l]--; left[l] < 0 && strings.TrimSpace(l) != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// Each step is small, and the code that the page shows is the program's.
func TestSteps(t *testing.T) {
	_, all := steps(t)
	was := ""
	for i, text := range all {
		source := program(t, i+1)
		more := added(was, source)
		require.LessOrEqual(t, len(more), mostLines, "step %d adds %d lines:\n%s", i+1, len(more), strings.Join(more, "\n"))
		shown := 0
		for _, b := range block.FindAllStringSubmatch(text, -1) {
			if b[1] == "go" {
				require.Contains(t, source, b[2], "step %d", i+1)
				shown++
			}
		}
		require.NotZero(t, shown)
		was = source
	}
	require.Equal(t, []string{"b", "b"}, added("a\nc", "a\nb\n\nb"))
}

// command is a line that begins with $, and the output that the page has below it.
type command struct{ line, output string }

func commands(text string) (all []command) {
	for _, b := range block.FindAllStringSubmatch(text, -1) {
		if b[1] == "go" {
			continue
		}
		for _, line := range strings.Split(strings.TrimSuffix(b[2], "\n"), "\n") {
			if c, ok := strings.CutPrefix(line, "$ "); ok {
				all = append(all, command{line: c})
			} else if len(all) > 0 {
				all[len(all)-1].output += line + "\n"
			}
		}
	}
	return all
}

// plain is output without times, its lines sorted: ranks print in any order.
func plain(output string) []string {
	lines := strings.Split(strings.TrimSpace(stamp.ReplaceAllString(output, "")), "\n")
	slices.Sort(lines)
	return lines
}

// Every command of the page prints what the page shows.
func TestTutorial(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("hardware: the page's commands are for a Unix shell")
	}
	if testing.Short() {
		t.Skip("-short: links seven programs")
	}
	cache.Whole()
	before, all := steps(t)
	dir := t.TempDir()
	run := func(in string, c command) {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", strings.ReplaceAll(c.line, "/tmp/tutorial", dir))
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "GOCCL_LOG=quiet", "CGO_ENABLED=0")
		out, err := cmd.CombinedOutput()
		if strings.Contains(c.line, "nothing.json") {
			require.Error(t, err, c.line)
		} else {
			require.NoError(t, err, "%s\n%s", c.line, out)
		}
		require.Equal(t, plain(c.output), plain(string(out)), c.line)
	}
	build := commands(before)
	require.Len(t, build, 2)
	run("../..", build[0])
	require.Equal(t, "cd /tmp/tutorial", build[1].line)
	ran := 0
	for _, text := range all {
		for _, c := range commands(text) {
			run(dir, c)
			ran++
		}
	}
	require.Equal(t, 12, ran)
}
