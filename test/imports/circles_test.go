package imports

import (
	"cmp"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// circleMost is how many files of a package may use functions of each other in one circle.
const circleMost = 10

// In plane, whose files are read most, it is fewer: what has become of ranks (settle, succession, neighbors) and what
// follows for those that are in (enter, member) ask each other.
const circleInPlane = 5

// A package that can be read from the bottom up has files that use functions of those below them. TestCircles counts the
// files that do not: the largest set of files of a package in which each reaches each.
func TestCircles(t *testing.T) {
	files := os.DirFS("../..")
	dirs, err := packagesOf(files)
	require.NoError(t, err)
	for _, dir := range dirs {
		circle, err := largestCircle(files, dir)
		require.NoError(t, err)
		most := circleMost
		if strings.HasPrefix(dir, "ccl/internal/plane") {
			most = circleInPlane
		}
		require.LessOrEqual(t, len(circle), most, "%s: %s: move a function to the file that uses it", dir,
			strings.Join(circle, " "))
	}
}

// packagesOf lists the directories that have Go files.
func packagesOf(files fs.FS) (dirs []string, err error) {
	err = sources(files, ".", func(name string, _ []byte) error {
		if dir := path.Dir(name); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
		return nil
	})
	return dirs, err
}

// largestCircle is the largest set of files of the package in dir, as it is built for Linux with all tags, each of which
// reaches each by functions and methods that it uses.
func largestCircle(files fs.FS, dir string) ([]string, error) {
	var parsed []*source
	if err := in(files, dir, func(s *source) {
		if builtForLinux(s) {
			parsed = append(parsed, s)
		}
	}); err != nil || len(parsed) == 0 {
		return nil, err
	}
	uses := usesOf(parsed)
	reaches := map[string]map[string]bool{}
	var visit func(from, at string)
	visit = func(from, at string) {
		for to := range uses[at] {
			if !reaches[from][to] {
				reaches[from][to] = true
				visit(from, to)
			}
		}
	}
	for _, s := range parsed {
		reaches[s.name] = map[string]bool{}
		visit(s.name, s.name)
	}
	var largest []string
	for from, all := range reaches {
		circle := []string{path.Base(from)}
		for to := range all {
			if to != from && reaches[to][from] {
				circle = append(circle, path.Base(to))
			}
		}
		slices.Sort(circle)
		if cmp.Or(cmp.Compare(len(circle), len(largest)), -slices.Compare(circle, largest)) > 0 {
			largest = circle
		}
	}
	if len(largest) == 1 {
		return nil, nil
	}
	return largest, nil
}

// usesOf says of each of a package's files which others' functions and methods it uses.
func usesOf(parsed []*source) map[string]map[string]bool {
	fset, at := token.NewFileSet(), map[*ast.Ident]string{} // one for all files, as the checker wants
	var trees []*ast.File
	for _, s := range parsed {
		tree, _ := parser.ParseFile(fset, s.name, s.text, parser.SkipObjectResolution) // it has been parsed before
		trees = append(trees, tree)
		each(tree, func(id *ast.Ident) { at[id] = s.name })
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: withoutContent{}, Error: func(error) {}, FakeImportC: true}
	pkg, _ := conf.Check("p", fset, trees, info) // what it imports is not looked at
	home := map[types.Object]string{}
	for id, o := range info.Defs {
		if _, isFunc := o.(*types.Func); isFunc {
			home[o] = at[id]
		}
	}
	uses := map[string]map[string]bool{}
	for id, o := range info.Uses {
		f, isFunc := o.(*types.Func)
		if !isFunc || o.Pkg() != pkg {
			continue
		}
		if from, to := at[id], home[f.Origin()]; to != "" && from != to {
			if uses[from] == nil {
				uses[from] = map[string]bool{}
			}
			uses[from][to] = true
		}
	}
	return uses
}

// withoutContent imports packages without their content.
type withoutContent struct{}

func (withoutContent) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}

var linuxTags = []string{"linux", "unix", "amd64", "cgo", "nccl", "rccl", "oneccl", "mpi", "xla"}

// builtForLinux reports whether a file is built for amd64 on Linux with the tags of all vendors.
func builtForLinux(s *source) bool {
	for _, other := range []string{"windows", "darwin", "bsd", "arm64", "other"} {
		if strings.Contains(path.Base(s.name), "_"+other) {
			return false
		}
	}
	for _, g := range s.Comments {
		for _, c := range g.List {
			if !constraint.IsGoBuild(c.Text) {
				continue
			}
			x, err := constraint.Parse(c.Text)
			return err == nil && x.Eval(func(tag string) bool {
				return strings.HasPrefix(tag, "go1") || slices.Contains(linuxTags, tag)
			})
		}
	}
	return true
}

// A circle of three files is found, also by way of a method; a file that all use, and one that uses all, are not in it.
func TestCirclesArePlanted(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte("package p\n" + text)} }
	circle, err := largestCircle(fstest.MapFS{
		"p/a.go":         file("type T int\nfunc A() { B() }"),
		"p/b.go":         file("func B() { var t T; t.C(); base() }"),
		"p/c.go":         file("func (T) C() { A() }"),
		"p/base.go":      file("func base() {}"),
		"p/top.go":       file("func top() { A() }"),
		"p/d_windows.go": file("func D() { top() }"),
		"p/a_test.go":    file("func x() { top() }"),
	}, "p")
	require.NoError(t, err)
	require.Equal(t, []string{"a.go", "b.go", "c.go"}, circle)
}
