package imports

import (
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// An Engine answers ErrUnsupported to what it lacks, so package ccl asks none what it is: it asserts no type of package engine,
// and nothing of a Comm's library, but that it is an engine.Memory, once.

var oneMemory = rule{
	name: "no type of an engine is asserted", dirs: []string{"ccl"}, alone: true,
	finds: func(src *source, bad func(string)) {
		for _, d := range src.Decls {
			check := func(of, typ ast.Expr) {
				t, _ := typ.(*ast.SelectorExpr)
				engine, _ := of.(*ast.SelectorExpr)
				switch {
				case t != nil && isIdent(t.X, "engine"):
					bad(src.name + ":" + nameOf(d) + " engine." + t.Sel.Name)
				case engine != nil && (engine.Sel.Name == "Engine" || engine.Sel.Name == "loaded"):
					bad(src.name + ":" + nameOf(d) + " of an engine")
				}
			}
			each(d, func(n *ast.TypeAssertExpr) {
				if n.Type != nil {
					check(n.X, n.Type)
				}
			})
			each(d, func(n *ast.TypeSwitchStmt) {
				for _, clause := range n.Body.List {
					for _, typ := range clause.(*ast.CaseClause).List {
						check(nil, typ)
					}
				}
			})
		}
	},
	allowed: []string{"ccl/memory.go:memoryOf engine.Memory"},
	planted: map[string]string{
		"ccl/a.go": `package ccl
			var d, fine = s.(interface{ Device() int })
			var t, no = e.(engine.Timer)
			var x, anonymous = c.loaded.Engine.(interface{ Shrink() })`,
		"ccl/b.go": `package ccl
			func f() { switch e.(type) { case *args, engine.Splitter: } }
			var twice = e.(engine.Memory)`,
		"ccl/internal/c.go": `package internal
			var t, ok = e.(engine.Timer)`,
	},
	want: []string{"ccl/a.go:the file engine.Timer", "ccl/a.go:the file of an engine", "ccl/b.go:f engine.Splitter", "ccl/b.go:the file engine.Memory"},
}

// libraries are the backends but cpu.
var libraries = []string{"nccl", "rccl", "oneccl", "mpi"}

// What there is to know of a backend is in its row in internal/engine. A file that names three of them has a list of its own.
var oneListOfBackends = rule{
	name: "there is one list of backends", dirs: []string{"ccl", "bench", "internal/gpu", "internal/sycl"},
	finds: func(src *source, bad func(string)) {
		named := map[string]bool{}
		each(src.File, func(lit *ast.BasicLit) {
			s, _ := strconv.Unquote(lit.Value)
			for word := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
				if lit.Kind == token.STRING && slices.Contains(libraries, word) {
					named[word] = true
				}
			}
		})
		if len(named) >= 3 {
			bad(src.name)
		}
	},
	planted: map[string]string{
		"bench/a.go": "package a\nvar names = []string{\"nccl\", \"rccl\", \"mpi\"}",
		"bench/b.go": "package a\nconst help = \"engine: cpu nccl rccl oneccl\"",
		"bench/c.go": "package a\nvar two = []string{\"nccl\", \"mpi\", \"nccl-mpi\"}",
	},
	want: []string{"bench/a.go", "bench/b.go"},
}

// rows are the libraries' names: of each there is a file that registers it, under its tag.
func rows(t *testing.T) (names []string) {
	files := os.DirFS("../..")
	require.NoError(t, below(files, "internal/engine", func(src *source) {
		each(src.File, func(lit *ast.CompositeLit) {
			if !isIdent(lit.Type, "Backend") {
				return
			}
			for _, e := range lit.Elts {
				if kv := e.(*ast.KeyValueExpr); isIdent(kv.Key, "Name") {
					if s, _ := strconv.Unquote(kv.Value.(*ast.BasicLit).Value); s != "cpu" { // which needs no tag
						names = append(names, s)
					}
				}
			}
		})
	}))
	return names
}

func TestBackends(t *testing.T) {
	files, names := os.DirFS("../.."), rows(t)
	require.ElementsMatch(t, libraries, names)
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
}
