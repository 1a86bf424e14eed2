package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// An Engine answers ErrUnsupported to what it lacks, so package ccl asks none what it is: it asserts no type of package engine,
// and nothing of a Comm's library, but that it is an engine.Memory, once.

// asserted lists the types that the files of package ccl assert of engines, but for the first engine.Memory.
func asserted(files fs.FS) (list []string, err error) {
	memory := 0
	err = sources(files, "ccl", func(name string, text []byte) error {
		if path.Dir(name) != "ccl" {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		check := func(of, typ ast.Expr) {
			t, _ := typ.(*ast.SelectorExpr)
			_, isEngine := of.(*ast.SelectorExpr)
			isEngine = isEngine && (of.(*ast.SelectorExpr).Sel.Name == "Engine" || of.(*ast.SelectorExpr).Sel.Name == "loaded")
			switch {
			case t != nil && isIdent(t.X, "engine") && t.Sel.Name == "Memory":
				if memory++; memory > 1 {
					list = append(list, name+": engine.Memory once more")
				}
			case t != nil && isIdent(t.X, "engine"):
				list = append(list, name+": engine."+t.Sel.Name)
			case isEngine:
				list = append(list, name+": of an engine")
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				if n.Type != nil {
					check(n.X, n.Type)
				}
			case *ast.TypeSwitchStmt:
				for _, clause := range n.Body.List {
					for _, typ := range clause.(*ast.CaseClause).List {
						check(nil, typ)
					}
				}
			}
			return true
		})
		return nil
	})
	return list, err
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

func TestAssertions(t *testing.T) {
	list, err := asserted(os.DirFS("../.."))
	require.NoError(t, err)
	require.Empty(t, list)
}

func TestAssertionsAreFound(t *testing.T) {
	list, err := asserted(fstest.MapFS{
		"ccl/a.go": {Data: []byte(`package ccl
			var m, ok = c.lib.Engine.(engine.Memory)
			var d, fine = s.(interface{ Device() int })
			var t, no = e.(engine.Timer)
			var x, anonymous = c.lib.Engine.(interface{ Shrink() })`)},
		"ccl/b.go": {Data: []byte(`package ccl
			func f() { switch e.(type) { case *args, engine.Splitter: } }
			var twice = e.(engine.Memory)`)},
		"ccl/internal/c.go": {Data: []byte(`package internal
			var t, ok = e.(engine.Timer)`)},
	})
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a.go: engine.Timer", "ccl/a.go: of an engine", "ccl/b.go: engine.Splitter", "ccl/b.go: engine.Memory once more"}, list)
}

// What there is to know of a backend is in its row in internal/engine. A file that names three of them has a list of its own.
func listing(files fs.FS, dir string, backends []string) (list []string, err error) {
	err = sources(files, dir, func(name string, text []byte) error {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		named := map[string]bool{}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				s, _ := strconv.Unquote(lit.Value)
				for _, b := range backends {
					for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
						named[b] = named[b] || word == b
					}
				}
			}
			return true
		})
		n := 0
		for _, is := range named {
			if is {
				n++
			}
		}
		if n >= 3 {
			list = append(list, name)
		}
		return nil
	})
	return list, err
}

// rows are the libraries' names: of each there is a file that registers it, under its tag.
func rows(t *testing.T) (names []string) {
	files := os.DirFS("../..")
	require.NoError(t, sources(files, "internal/engine", func(name string, text []byte) error {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !isIdent(lit.Type, "Backend") {
				return true
			}
			for _, e := range lit.Elts {
				if kv := e.(*ast.KeyValueExpr); isIdent(kv.Key, "Name") {
					if s, _ := strconv.Unquote(kv.Value.(*ast.BasicLit).Value); s != "cpu" { // which needs no tag
						names = append(names, s)
					}
				}
			}
			return false
		})
		return err
	}))
	return names
}

func TestBackends(t *testing.T) {
	files, names := os.DirFS("../.."), rows(t)
	require.Len(t, names, 4)
	for _, name := range names {
		text, err := fs.ReadFile(files, "ccl/backend_"+name+".go")
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "//go:build "+name+"\n"), name)
		require.Contains(t, string(text), "engine.Register(", name)
	}
	registering, err := fs.Glob(files, "ccl/backend_*.go")
	require.NoError(t, err)
	for _, file := range registering {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "ccl/backend_"), ".go")
		require.Contains(t, append(names, "test"), name, "a backend without a row: builds without it know nothing of it")
	}
	for _, dir := range []string{"ccl", "bench", "internal/gpu", "internal/sycl"} {
		list, err := listing(files, dir, names)
		require.NoError(t, err)
		require.Empty(t, list, "a second list of backends")
	}
}

func TestListsAreFound(t *testing.T) {
	list, err := listing(fstest.MapFS{
		"bench/a.go": {Data: []byte("package a\nvar names = []string{\"x\", \"y\", \"z\"}")},
		"bench/b.go": {Data: []byte("package a\nconst help = \"engine: cpu x y z\"")},
		"bench/c.go": {Data: []byte("package a\nvar two = []string{\"x\", \"y\", \"xyz\"}")},
	}, "bench", []string{"x", "y", "z"})
	require.NoError(t, err)
	require.Equal(t, []string{"bench/a.go", "bench/b.go"}, list)
}
