package imports

import (
	"go/ast"
	"go/build/constraint"
	"slices"
	"strings"
	"testing"

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

// Packages that choose see nothing that this process alone knows.
var blindChoices = rule{
	name: "choices are blind", dirs: choosing, alone: true,
	finds: func(src *source, bad func(string)) {
		if local[src.name] != "" {
			return
		}
		for _, spec := range src.Imports {
			if imported := strings.Trim(spec.Path.Value, `"`); slices.Contains(blind, imported) {
				bad(src.name + " imports " + imported)
			}
		}
		each(src.File, func(s *ast.SelectorExpr) {
			if slices.Contains(unseen, s.Sel.Name) {
				bad(src.name + " names " + s.Sel.Name)
			}
		})
		for line := range strings.Lines(string(src.text)) {
			if !constraint.IsGoBuild(line) {
				continue
			}
			expr, _ := constraint.Parse(line) // which the compiler has read
			expr.Eval(func(tag string) bool {
				if !slices.Contains(platforms, tag) {
					bad(src.name + " is built by " + tag)
				}
				return true
			})
		}
	},
	planted: map[string]string{
		"ccl/internal/rounds/a.go":   "package rounds\n\nimport \"" + module + "/ccl/internal/machine\"\n\nvar from = machine.CPU.ReadMovedFrom\n",
		"ccl/internal/rounds/b.go":   "package rounds\n\nimport \"syscall\"\n\nvar v, _ = syscall.Getenv(\"GOCCL_SHM_READ\")\n",
		"ccl/internal/rounds/c.go":   "//go:build race\n\npackage rounds\n",
		"ccl/internal/rounds/d.go":   "//go:build linux\n\npackage rounds\n\nimport \"context\"\n",
		"ccl/internal/rounds/e/f.go": "package e\n\nimport \"os\"\n",
		"ccl/internal/links/head.go": "package links\n\nimport \"os\"\n\nvar v = os.Getenv(\"GOCCL_CHECKSUM\")\n",
	},
	want: []string{"ccl/internal/rounds/a.go imports " + module + "/ccl/internal/machine", "ccl/internal/rounds/b.go names Getenv", "ccl/internal/rounds/c.go is built by race"},
}

// Each file that may see more is there.
func TestLocalFilesAreThere(t *testing.T) {
	for name := range local {
		require.FileExists(t, "../../"+name, "take it from the list")
	}
}
