package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// builds are the commands of a document that build a program of this module.
var builds = regexp.MustCompile(`go build((?: -tags [\w,]+)*)(?: -o (\S+))? (\./[\w/.-]*\w)`)

// unbuildable lists the commands of a text that cannot make the program where they say, in the root
// of a checkout: go build writes no program over a directory, and with -o into it, so that the next
// line finds a directory where it expects a program.
func unbuildable(text string) (bad []string) {
	for _, m := range builds.FindAllStringSubmatch(text, -1) {
		out := m[2]
		if strings.HasSuffix(out, "/") || filepath.IsAbs(out) {
			continue
		}
		if out == "" {
			out = path.Base(m[3])
		}
		if info, err := os.Stat(filepath.Join(root, out)); err == nil && info.IsDir() {
			bad = append(bad, m[0])
		}
	}
	return bad
}

func TestBuildsMakeProgramsWhereTheySay(t *testing.T) {
	for text, want := range map[string][]string{
		"`go build ./bench`. Then":             {"go build ./bench"},
		"go build -tags nccl -o bench ./bench": {"go build -tags nccl -o bench ./bench"},
		"go build -o /tmp/bench ./bench":       nil,
		"go build -o out/ ./bench ./xla":       nil,
		"`go build ./examples/gpt` makes":      nil,
	} {
		require.Equal(t, want, unbuildable(text), text)
	}
	for name, text := range pages(t) {
		if strings.Contains(name, "/interop/") { // about programs of others
			continue
		}
		require.Empty(t, unbuildable(text), name)
	}
}
