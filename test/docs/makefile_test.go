package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// packagePath is a package, or a folder of packages, as a recipe names it.
var packagePath = regexp.MustCompile(`(?:^|\s)\./([a-z][A-Za-z0-9_/]*)`)

// missing lists the paths below folders of the repository that a text of recipes names and that are not there: a target would stop.
// Other paths are of another folder, which a recipe has gone to.
func missing(root, text string) (list []string) {
	for _, m := range packagePath.FindAllStringSubmatch(text, -1) {
		top, _, _ := strings.Cut(m[1], "/")
		if _, err := os.Stat(filepath.Join(root, top)); err != nil {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
			list = append(list, m[1])
		}
	}
	return list
}

// TestTargetsNameWhatIsThere: a package that has moved is not tested any more where a target, or CI, still has its old path.
func TestTargetsNameWhatIsThere(t *testing.T) {
	root := "../.."
	scripts, err := filepath.Glob(root + "/test/*.sh")
	require.NoError(t, err)
	for _, name := range append(scripts, root+"/Makefile", root+"/.ci/run") {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Empty(t, missing(root, string(text)), name)
	}
	require.Equal(t, []string{"ccl/gone"}, missing(root, "all:\n\tgo test ./ccl/... ./ccl/gone "+strings.Repeat("./ccl ", 2)+"./...\n"))
}
