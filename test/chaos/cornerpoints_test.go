//go:build fault

package chaos

import (
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every point of package inject is one at which processes are killed: here, or by a test of package ccl.
func TestCornerPoints(t *testing.T) {
	call := regexp.MustCompile(`inject\.At\("([^"]*)"\)`)
	var found []string
	elsewhere := map[string]string{"grow": "grow", "guest": "grow", "mail": "link", "spare": "spare"}
	require.NoError(t, filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range call.FindAllSubmatch(text, -1) {
			what, _, _ := strings.Cut(string(m[1]), ".")
			if test, ok := elsewhere[what]; ok {
				text, err := os.ReadFile("../../ccl/" + test + "_fault_test.go")
				require.NoError(t, err)
				require.Contains(t, string(text), string(m[1]))
			} else {
				found = append(found, string(m[1]))
			}
		}
		return err
	}))
	slices.Sort(found)
	require.Equal(t, slices.Compact(found), points)
}

// Where counters begin near 2^32, all Comms count beyond.
func TestCornersWrap(t *testing.T) {
	some := 0
	for seed := range uint64(5000) {
		k := newCorner(seed)
		if k.sort != wraps {
			continue
		}
		some++
		start, err := strconv.ParseUint(strings.TrimPrefix(k.action, "from:"), 10, 32)
		require.NoError(t, err)
		for _, p := range k.comms {
			require.Greater(t, start+uint64(len(p.calls)), uint64(math.MaxUint32), "seed %d", seed)
		}
	}
	require.NotZero(t, some)
}
