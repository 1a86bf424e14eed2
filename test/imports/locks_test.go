package imports

import (
	"go/ast"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// orderedLocks are the packages whose locks stand in the order that the package comment of plane has: plane's under their
// names, the others' after that of their package.
var orderedLocks = []string{"call", "region", "plane/control", "plane/event", "plane/status", "plane/watch", "plane", "reach", "rounds", "links", "shrink", "join", "cpu", "../../internal/lived"}

// locks lists the mutexes of a package below ccl/internal, as type.field; an embedded one has its type's or variable's name.
func locks(files fs.FS, dir string) (list []string, err error) {
	var within func(name string, t ast.Expr)
	within = func(name string, t ast.Expr) {
		s, ok := t.(*ast.StructType)
		if !ok {
			if isMutex(t) {
				list = append(list, name)
			}
			return
		}
		for _, f := range s.Fields.List {
			switch {
			case isMutex(f.Type) && len(f.Names) == 0:
				list = append(list, name)
			default:
				for _, n := range f.Names {
					within(name+"."+n.Name, f.Type)
				}
			}
		}
	}
	err = in(files, dir, func(src *source) {
		for s := range specs[*ast.TypeSpec](src.File) {
			within(s.Name.Name, s.Type)
		}
		for s := range specs[*ast.ValueSpec](src.File) {
			for i, n := range s.Names {
				if s.Type != nil {
					within(n.Name, s.Type)
				} else if lit, ok := compositeOf(s.Values, i); ok {
					within(n.Name, lit.Type)
				}
			}
		}
	})
	slices.Sort(list)
	return list, err
}

func compositeOf(values []ast.Expr, i int) (*ast.CompositeLit, bool) {
	if i >= len(values) {
		return nil, false
	}
	lit, ok := values[i].(*ast.CompositeLit)
	return lit, ok
}

// inOrder lists the locks that a package comment names below the title of their order, one a line, from the first to take on.
func inOrder(text string) (list []string) {
	_, text, _ = strings.Cut(text, "// # The order of locks\n")
	text, _, _ = strings.Cut(text, "\n// # ")
	for line := range strings.Lines(text) {
		if entry, ok := strings.CutPrefix(line, "//\t"); ok {
			list = append(list, strings.Fields(entry)[0])
		}
	}
	return list
}

// Each mutex of the engine has its place in the order of locks, and each place its mutex.
func TestLocks(t *testing.T) {
	files := os.DirFS("../..")
	text, err := fs.ReadFile(files, "ccl/internal/plane/doc.go")
	require.NoError(t, err)
	var all []string
	for _, p := range orderedLocks {
		list, err := locks(files, path.Join("ccl/internal", p))
		require.NoError(t, err)
		for _, name := range list {
			if p != "plane" {
				name = path.Base(p) + "." + name
			}
			all = append(all, name)
		}
	}
	require.NotEmpty(t, all)
	require.ElementsMatch(t, all, inOrder(string(text)), "mutexes of ccl/internal, and the order of locks in the package comment of plane")
}

func TestLocksFinds(t *testing.T) {
	files := fstest.MapFS{
		"ccl/internal/a/a.go":   {Data: []byte("package a\nimport \"sync\"\ntype T struct{ x int; mu, other sync.Mutex; in struct{ sync.RWMutex } }\ntype u struct{ sync.Mutex }\nvar g = struct{ sync.Mutex }{}\nvar v sync.Mutex\nvar w simhost.Mutex\n")},
		"ccl/internal/a/b/b.go": {Data: []byte("package b\nimport \"sync\"\nvar w sync.Mutex\n")},
	}
	list, err := locks(files, "ccl/internal/a")
	require.NoError(t, err)
	require.Equal(t, []string{"T.in", "T.mu", "T.other", "g", "u", "v", "w"}, list)
	require.Equal(t, []string{"T.mu", "u"}, inOrder("// # The order of locks\n//\n// One:\n//\n//\tT.mu  what\n//\tu     it is\n//\n// # Else\n//\n//\tv  no\n"))
}
