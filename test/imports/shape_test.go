package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

// What keeps the engine's packages readable: small types, small files, a test beside each file. What is larger today is
// listed with how large: it may only shrink, and the list with it.
const (
	mostFields   = 15
	mostMethods  = 40
	mostLines    = 500
	linesUntried = 60 // of a file without a test beside it
)

// records are types whose fields are what a caller fills in or reads.
var records = []string{"ccl.Error", "ccl.Options", "ccl.traceLine", "internal/op.Call", "ccl/internal/plane/status.Status"}

// large are the types that have more fields or methods than they should.
var large = map[string]size{}

// withoutTest are the files of ccl, by directory, that have no test beside them yet.
var withoutTest = map[string]string{}

// makers are the files of ccl that may know CPUs by name: the table of tuning, and what finds its row.
var makers = []string{"ccl/internal/machine/cpuid_amd64.go", "ccl/internal/tuning/tuning.go"}

// makerNames is how code asks who made the CPU.
var makerNames = []string{"GenuineIntel", "AuthenticAMD", ".Intel", ".AMD", ".Maker"}

// layoutNames is how code asks this process where data lie, which the ranks of a host must agree on: plane.LayoutOf is to be asked.
var layoutNames = []string{"CPU.Layout", "CPU.WholeTwo", "CPU.SwapFrom", "CPU.Ring", "CPU.StreamTo", "CPU.StageSharedTo", "CPU.SentRing", "CPU.SentMost"}

// layouts are the files that do.
var layouts = []string{"ccl/internal/plane/board.go"}

// size is what a type has.
type size struct{ fields, methods int }

// types counts the fields and methods of each type in the files below dir, whatever platform they are for.
func types(files fs.FS, dir string) (map[string]size, error) {
	fields, methods := map[string]int{}, map[string]map[string]bool{}
	err := sources(files, dir, func(name string, text []byte) error {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		in := path.Dir(name) + "."
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					continue
				}
				t := in + receiver(d.Recv.List[0].Type)
				if methods[t] == nil {
					methods[t] = map[string]bool{}
				}
				methods[t][d.Name.Name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						if s, ok := t.Type.(*ast.StructType); ok {
							n := 0
							for _, f := range s.Fields.List {
								n += max(len(f.Names), 1)
							}
							fields[in+t.Name.Name] = max(n, fields[in+t.Name.Name])
						}
					}
				}
			}
		}
		return nil
	})
	all := map[string]size{}
	for t, n := range fields {
		all[t] = size{n, 0}
	}
	for t, m := range methods {
		all[t] = size{fields[t], len(m)}
	}
	return all, err
}

// receiver is the name of a method's type.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return "?"
}

// sources calls f for each Go file below dir but tests and what is generated.
func sources(files fs.FS, dir string, f func(name string, text []byte) error) error {
	return fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			if err == nil && d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
				return fs.SkipDir
			}
			return err
		}
		text, err := fs.ReadFile(files, name)
		if err != nil || strings.HasPrefix(string(text), "// Code generated") {
			return err
		}
		return f(name, text)
	})
}

// tooLarge are the types below dir that are larger than they may be, or smaller than known says.
func tooLarge(files fs.FS, dir string, known map[string]size) (bad []string, err error) {
	all, err := types(files, dir)
	for t, n := range all {
		if slices.Contains(records, t) {
			n.fields = 0
		}
		was, listed := known[t]
		limit := size{max(mostFields, was.fields), max(mostMethods, was.methods)}
		switch {
		case n.fields > limit.fields || n.methods > limit.methods:
			bad = append(bad, fmt.Sprintf("%s has %d fields and %d methods: at most %d and %d", t, n.fields, n.methods, limit.fields, limit.methods))
		case listed && (was.fields > mostFields && n.fields < was.fields || was.methods > mostMethods && n.methods < was.methods):
			bad = append(bad, fmt.Sprintf("%s has %d fields and %d methods only: lower it in the list to that", t, n.fields, n.methods))
		}
	}
	for t := range known {
		if _, ok := all[t]; !ok {
			bad = append(bad, t+" is gone: take it from the list")
		}
	}
	slices.Sort(bad)
	return bad, err
}

// wholes are where the tests of a part may lie that need the whole: a part of the CPU engine, and a Comm.
var wholes = map[string]string{
	"ccl/internal/plane": "ccl/internal/cpu", "ccl/internal/reach": "ccl/internal/cpu", "ccl/internal/rounds": "ccl/internal/cpu", "ccl/internal/links": "ccl/internal/cpu",
}

// untried lists the files below dir that should have a test beside them and have none. A file for one platform may
// have its test beside the file that it belongs to; one whose test needs the whole may have it there, under its own name. A
// file without declarations, such as doc.go, needs none.
func untried(files fs.FS, dir string) (list []string, err error) {
	err = sources(files, dir, func(name string, text []byte) error {
		base := strings.TrimSuffix(name, ".go")
		elsewhere := base
		if whole, ok := wholes[path.Dir(name)]; ok {
			elsewhere = whole + "/" + path.Base(base)
		}
		for _, platform := range []string{"", "_linux", "_other", "_unix", "_amd64"} {
			for _, beside := range []string{strings.TrimSuffix(base, platform), base + platform, strings.TrimSuffix(elsewhere, platform), elsewhere + platform} {
				if _, err := fs.Stat(files, beside+"_test.go"); err == nil {
					return nil
				}
			}
		}
		if strings.Count(string(text), "\n") <= linesUntried {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
			g, ok := d.(*ast.GenDecl)
			return !ok || g.Tok != token.IMPORT
		}) {
			list = append(list, name)
		}
		return nil
	})
	return list, err
}

// longFiles are the files of the repository that have more lines than they should.
func longFiles(files fs.FS) (list []string, err error) {
	err = sources(files, ".", func(name string, text []byte) error {
		if n := strings.Count(string(text), "\n"); n >= mostLines {
			list = append(list, fmt.Sprintf("%s has %d lines: less than %d", name, n, mostLines))
		}
		return nil
	})
	return list, err
}

// asking are the files below dir whose code has one of those names.
func asking(files fs.FS, dir string, names []string) (list []string, err error) {
	err = sources(files, dir, func(name string, text []byte) error {
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "//")
			if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(code, name) }) {
				list = append(list, name)
				break
			}
		}
		return nil
	})
	return list, err
}

func TestShape(t *testing.T) {
	repo := os.DirFS("../..")
	bad, err := tooLarge(repo, "ccl", large)
	require.NoError(t, err)
	require.Empty(t, bad)
	bad, err = longFiles(repo)
	require.NoError(t, err)
	require.Empty(t, bad)
	var known []string
	for dir, names := range withoutTest {
		for _, name := range strings.Fields(names) {
			known = append(known, dir+"/"+name+".go")
		}
	}
	slices.Sort(known)
	bad, err = untried(repo, "ccl")
	require.NoError(t, err)
	require.Equal(t, known, bad, "files without a test beside them: write one, or take the file that has one from the list")
	bad, err = asking(repo, "ccl", makerNames)
	require.NoError(t, err)
	require.Equal(t, makers, bad, "files that ask who made the CPU")
	bad, err = asking(repo, "ccl", layoutNames)
	require.NoError(t, err)
	require.Equal(t, layouts, bad, "files that ask this process where data lie")
}

// Each rule finds what is planted.
func TestShapeFinds(t *testing.T) {
	var b strings.Builder
	b.WriteString("package a\n\ntype T struct {\n")
	for i := range mostFields + 1 {
		fmt.Fprintf(&b, "\tf%d, g%d int\n", i, i)
	}
	b.WriteString("}\n\ntype G[E any] struct{}\n")
	for i := range mostMethods + 1 {
		fmt.Fprintf(&b, "func (g *G[E]) m%d() {}\n", i)
	}
	long := strings.Repeat("\n", mostLines)
	files := fstest.MapFS{
		"ccl/a/a.go":                       {Data: []byte(b.String())},
		"ccl/a/a_linux.go":                 {Data: []byte("package a\n\nfunc (g *G[E]) m0() {}\n")}, // another file's, counted once
		"ccl/a/long.go":                    {Data: []byte("package a\n" + long)},
		"ccl/a/doc.go":                     {Data: []byte(strings.Repeat("//\n", linesUntried+1) + "package a\n\nimport _ \"embed\"\n")},
		"ccl/internal/reach/b.go":          {Data: []byte("package reach\n\nvar x = 1\n" + strings.Repeat("\n", linesUntried))},
		"ccl/internal/reach/c.go":          {Data: []byte("package reach\n\nvar y = 1\n" + strings.Repeat("\n", linesUntried))},
		"ccl/internal/cpu/c_linux_test.go": {Data: []byte("package cpu\n")},
		"ccl/internal/cpu/a_test.go":       {Data: []byte("package cpu\n")}, // of no part's file
		"ccl/a/long_test.go":               {Data: []byte("package a\n" + long + long)},
		"ccl/a/maker.go":                   {Data: []byte("package a\n// tuning.CPU.Maker\nvar x = tuning.CPU.Maker\n")},
		"ccl/a/layout.go":                  {Data: []byte("package a\nvar x = tuning.CPU.Ring\n")},
		"ccl/a/notmaker.go":                {Data: []byte("package a\n// tuning.CPU.Maker\nvar x = tuning.CPU.FetchAhead\n")},
		"ccl/a/gen.go":                     {Data: []byte("// Code generated by x. DO NOT EDIT.\npackage a\n" + long)},
	}
	bad, err := tooLarge(files, "ccl", nil)
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a.G has 0 fields and 41 methods: at most 15 and 40", "ccl/a.T has 32 fields and 0 methods: at most 15 and 40"}, bad)
	bad, err = tooLarge(files, "ccl", map[string]size{"ccl/a.G": {0, 41}, "ccl/a.T": {33, 0}, "ccl/a.U": {16, 0}})
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a.T has 32 fields and 0 methods only: lower it in the list to that", "ccl/a.U is gone: take it from the list"}, bad)
	bad, err = longFiles(files)
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a/long.go has 501 lines: less than 500"}, bad)
	bad, err = untried(files, "ccl")
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a/a.go", "ccl/internal/reach/b.go"}, bad)
	bad, err = asking(files, "ccl", makerNames)
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a/maker.go"}, bad)
	bad, err = asking(files, "ccl", layoutNames)
	require.NoError(t, err)
	require.Equal(t, []string{"ccl/a/layout.go"}, bad)
}
