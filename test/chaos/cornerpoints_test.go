//go:build fault

package chaos

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every point of package fault is one at which processes are killed.
func TestCornerPoints(t *testing.T) {
	call := regexp.MustCompile(`inject\.At\("([^"]*)"\)`)
	var found []string
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range call.FindAllSubmatch(text, -1) {
			found = append(found, string(m[1]))
		}
		return err
	}))
	slices.Sort(found)
	require.Equal(t, slices.Compact(found), points)
}
