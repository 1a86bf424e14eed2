//go:build linux

package promises

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each promise from R1 to R21, except R19, is in the table, and each test that docs/reliability.md names is there, as is one for each way in
// which a failure is found.
func TestPromisesAreShown(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^func (Test\w*)\(`)
	tests := map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests[string(m[1])] = true
		}
		return err
	}))
	text, err := os.ReadFile(document)
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(text), tableBegin)
	require.True(t, ok)
	promised := map[string]bool{}
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || !strings.HasPrefix(cells[1], " R") {
			continue
		}
		promised[strings.TrimRight(strings.TrimSpace(cells[1]), "b")] = true
		named := strings.Fields(strings.ReplaceAll(cells[5], "`", ""))
		require.NotEmpty(t, named, "no test for: %s", line)
		for _, name := range named {
			require.True(t, tests[name], "%s is no test", name)
		}
	}
	require.Len(t, promised, 21)
	text, err = os.ReadFile(failures)
	require.NoError(t, err)
	for _, m := range regexp.MustCompile("`(Test[A-Z0-9]\\w*)`").FindAllSubmatch(text, -1) {
		require.True(t, tests[string(m[1])], "%s is no test", m[1])
	}
	_, ways, ok := strings.Cut(string(text), "| shown by |\n")
	require.True(t, ok)
	ways, _, _ = strings.Cut(ways, "\n\n")
	for line := range strings.Lines(ways) {
		if cells := strings.Split(line, "|"); len(cells) > 5 && !strings.HasPrefix(cells[1], "---") {
			require.Contains(t, cells[5], "`Test", "no test for: %s", line)
		}
	}
}
