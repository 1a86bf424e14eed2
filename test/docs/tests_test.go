package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	namedTest = regexp.MustCompile("`(Test[A-Z][A-Za-z0-9]*)`")
	aTest     = regexp.MustCompile(`(?m)^func (Test[A-Z][A-Za-z0-9]*)\(`)
)

// unknownTests are the tests that a page names and that are not there.
func unknownTests(text string, tests map[string]bool) (bad []string) {
	for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
		if !tests[m[1]] {
			bad = append(bad, m[1])
		}
	}
	return bad
}

// What is promised names tests, and these are there. In the table of all ways to start a job each cell names one.
func TestPromisesNameTests(t *testing.T) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-co", "--exclude-standard", "*_test.go").Output()
	if err != nil {
		t.Skip("hardware: no git checkout")
	}
	tests := map[string]bool{}
	for _, name := range strings.Fields(string(out)) {
		text, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
		for _, m := range aTest.FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
	}
	for _, page := range []string{"SECURITY.md", "docs/secret.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		require.NoError(t, err)
		require.Empty(t, unknownTests(string(text), tests), page)
	}
	require.Equal(t, []string{"TestThatNobodyHasWritten"}, unknownTests("`TestThatNobodyHasWritten` and `TestLocal`", tests))

	security, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(security), "### Every way of starting\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n### ")
	rows := 0
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(strings.Trim(row, "|"), "|")
		if !strings.HasPrefix(row, "|") || strings.HasPrefix(row, "|--") || strings.HasPrefix(row, "| started by") {
			continue
		}
		require.Len(t, cells, 5, row)
		for _, cell := range cells[1:] {
			require.Regexp(t, namedTest, cell, row)
		}
		rows++
	}
	require.GreaterOrEqual(t, rows, 9)
}
