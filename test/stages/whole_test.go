package stages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// builds is a call that starts go, make, or a script that builds a bundle.
var builds = regexp.MustCompile(`exec\.Command(Context)?\(.*"(go|make|[./]*bundle\.sh)"`)

// unseen reports whether a test builds what go test does not see, and does not say so.
func unseen(text string) bool {
	return builds.MatchString(text) && !strings.Contains(text, "cache.Whole()") && !strings.Contains(text, `os.Getenv("GOCCL_TEST_TREE")`)
}

// CI runs with a build cache that holds results of tests. A test that builds a program, whose files go test does not
// know, says so.
func TestBuildersSayIt(t *testing.T) {
	require.True(t, unseen(`exec.Command("go", "build")`))
	require.True(t, unseen(`exec.CommandContext(ctx, "../bundle.sh", dir)`))
	require.False(t, unseen("cache.Whole()\n"+`exec.Command("go", "build")`))
	require.False(t, unseen(`exec.Command("cc")`))
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if strings.HasSuffix(path, "_test.go") && d.Name() != "whole_test.go" {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.False(t, unseen(string(text)), "%s: call cache.Whole before", path)
		}
		return nil
	}))
}
