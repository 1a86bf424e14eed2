package imports

import (
	"go/ast"
	"go/build/constraint"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// choosing are the packages that choose how the ranks of a host work together. All ranks must choose alike, whatever each was built
// with and started with. So these see neither the CPU of this process nor its environment nor a build tag: what they choose by is
// in the region and in what the ranks have agreed on.
var choosing = []string{"ccl/internal/tuning", "ccl/internal/region", "ccl/internal/reach", "ccl/internal/rounds", "ccl/internal/links"}

// blind is what they must not import, and what they must not name.
var (
	blind  = []string{"os", "runtime", "runtime/debug", "golang.org/x/sys/cpu", module + "/ccl/internal/machine"}
	unseen = []string{"Getenv", "LookupEnv", "Environ", "NumCPU", "GOMAXPROCS"}
)

// local are files that may all the same: nothing in them chooses.
var local = map[string]string{
	"ccl/internal/links/head.go": "each header says whether its payload has a checksum",
}

// platforms are the build constraints that all ranks of a host have in common.
var platforms = []string{"linux", "darwin", "windows", "unix", "amd64", "arm64"}

// sees lists what the files of a package see of this process alone.
func sees(files fs.FS, dir string) (list []string, err error) {
	err = in(files, dir, func(src *source) {
		if local[src.name] != "" {
			return
		}
		for _, spec := range src.Imports {
			if imported := strings.Trim(spec.Path.Value, `"`); slices.Contains(blind, imported) {
				list = append(list, src.name+" imports "+imported)
			}
		}
		ast.Inspect(src.File, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(unseen, s.Sel.Name) {
				list = append(list, src.name+" names "+s.Sel.Name)
			}
			return true
		})
		for line := range strings.Lines(string(src.text)) {
			if !constraint.IsGoBuild(line) {
				continue
			}
			expr, _ := constraint.Parse(line) // which the compiler has read
			expr.Eval(func(tag string) bool {
				if !slices.Contains(platforms, tag) {
					list = append(list, src.name+" is built by "+tag)
				}
				return true
			})
		}
	})
	return list, err
}

func TestChoices(t *testing.T) {
	files := os.DirFS("../..")
	for _, dir := range choosing {
		list, err := sees(files, dir)
		require.NoError(t, err)
		require.Empty(t, list, dir)
	}
	for name := range local {
		_, err := fs.Stat(files, name)
		require.NoError(t, err, "take it from the list")
	}
}

// What a process alone knows is found in a package that chooses.
func TestChoicesFinds(t *testing.T) {
	planted := fstest.MapFS{
		"ccl/internal/rounds/a.go":   {Data: []byte("package rounds\n\nimport \"" + module + "/ccl/internal/machine\"\n\nvar from = machine.CPU.ReadMovedFrom\n")},
		"ccl/internal/rounds/b.go":   {Data: []byte("package rounds\n\nimport \"syscall\"\n\nvar v, _ = syscall.Getenv(\"GOCCL_SHM_READ\")\n")},
		"ccl/internal/rounds/c.go":   {Data: []byte("//go:build race\n\npackage rounds\n")},
		"ccl/internal/rounds/d.go":   {Data: []byte("//go:build linux\n\npackage rounds\n\nimport \"context\"\n")},
		"ccl/internal/rounds/e/f.go": {Data: []byte("package e\n\nimport \"os\"\n")},
		"ccl/internal/links/head.go": {Data: []byte("package links\n\nimport \"os\"\n\nvar v = os.Getenv(\"GOCCL_CHECKSUM\")\n")},
	}
	list, err := sees(planted, "ccl/internal/rounds")
	require.NoError(t, err)
	require.Equal(t, []string{
		"ccl/internal/rounds/a.go imports " + module + "/ccl/internal/machine", "ccl/internal/rounds/b.go names Getenv", "ccl/internal/rounds/c.go is built by race",
	}, list)
	list, err = sees(planted, "ccl/internal/links")
	require.NoError(t, err)
	require.Empty(t, list)
}
