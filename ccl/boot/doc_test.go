package boot

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// TestDocVariables requires that the package's table has every variable that its
// code names, and no other of ours.
func TestDocVariables(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, table, ok := strings.Cut(string(doc), "# Every variable this package reads")
	require.True(t, ok)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	literal := regexp.MustCompile(`"((?:[A-Z][A-Z0-9]*_)+[A-Za-z0-9_]+|RANK)[="]`)
	named := map[string]bool{}
	for _, v := range environ.All() {
		if v.Group == environ.Job || v.Group == environ.Secret {
			named[v.Name] = true
		}
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		for _, m := range literal.FindAllStringSubmatch(string(source), -1) {
			named[m[1]] = true
		}
	}
	require.Greater(t, len(named), 40)
	for name := range named {
		require.Regexp(t, `\b`+name+`\b`, table)
	}
	for _, name := range regexp.MustCompile(`\bGOCCL_[A-Z_]+`).FindAllString(table, -1) {
		require.True(t, named[name], name)
	}
}
