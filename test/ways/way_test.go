package main

import (
	"bufio"
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is what all import paths of this module begin with.
const module = "github.com/goccl/goccl/"

// function is one on the way of a call.
type function struct {
	file, name      string
	line            int
	lines, branches int
}

func (f *function) String() string {
	return fmt.Sprintf("%s:%d %s, %d lines, %d branches", f.file, f.line, f.name, f.lines, f.branches)
}

// way is the functions that a call has passed, those of this program left out.
type way []function

// count returns how many functions, files and packages are on the way.
func (w way) count() [3]int {
	files, packages := map[string]bool{}, map[string]bool{}
	for _, f := range w {
		files[f.file], packages[path.Dir(f.file)] = true, true
	}
	return [3]int{len(w), len(files), len(packages)}
}

func (w way) String() string {
	var b strings.Builder
	for i := range w {
		fmt.Fprintln(&b, &w[i])
	}
	return b.String()
}

// block is a line of a coverage profile: file:line.column,line.column statements count.
var block = regexp.MustCompile(`^(.+):(\d+)\.\d+,\d+\.\d+ \d+ (\d+)$`)

// readWay returns the functions, of the module at root, that a coverage profile says were passed.
func readWay(profile io.Reader, root string) (way, error) {
	passed := map[string][]int{} // lines on which blocks begin, by file
	for in := bufio.NewScanner(profile); in.Scan(); {
		m := block.FindStringSubmatch(in.Text())
		if m == nil || m[3] == "0" {
			continue
		}
		file, ok := strings.CutPrefix(m[1], module)
		if !ok || path.Dir(file) == "test/ways" || file == "ccl/internal/inject/off.go" { // what is empty is compiled away
			continue
		}
		line, err := strconv.Atoi(m[2])
		if err != nil {
			return nil, err
		}
		passed[file] = append(passed[file], line)
	}
	var w way
	for file, lines := range passed {
		all, err := functionsOf(root, file)
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			if slices.ContainsFunc(lines, func(line int) bool { return f.line <= line && line < f.line+f.lines }) {
				w = append(w, f)
			}
		}
	}
	slices.SortFunc(w, func(a, b function) int { return cmp.Or(cmp.Compare(a.file, b.file), a.line-b.line) })
	return w, nil
}

// functionsOf returns the functions that a file declares. Those within them are parts of them.
func functionsOf(root, file string) ([]function, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []function
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		line := files.Position(f.Pos()).Line
		all = append(all, function{file: file, name: f.Name.Name, line: line, lines: files.Position(f.End()).Line - line + 1, branches: branches(f.Body)})
	}
	return all, nil
}

// branches counts the places at which a body goes one of several ways: each if, loop, case, && and ||.
func branches(body *ast.BlockStmt) (n int) {
	ast.Inspect(body, func(x ast.Node) bool {
		switch x := x.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt, *ast.CommClause:
			n++
		case *ast.CaseClause:
			if x.List != nil {
				n++
			}
		case *ast.BinaryExpr:
			if x.Op == token.LAND || x.Op == token.LOR {
				n++
			}
		}
		return true
	})
	return n
}

// A way has the functions of which a block was passed, each once, and nothing of this program.
func TestReadWay(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a/x.go"), []byte(`package a

func one() {
	two()
}

func two() bool {
	for i := range 3 {
		if i > 1 && i < 3 || i == 7 {
			return true
		}
	}
	return false
}

func never() {}
`), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "a/b/y.go"), []byte("package b\n\nfunc (t T) Three() { switch { case true: default: } }\n"), 0o600))
	w, err := readWay(strings.NewReader(`mode: atomic
github.com/goccl/goccl/a/x.go:3.12,5.2 1 1
github.com/goccl/goccl/a/x.go:7.17,8.20 1 2
github.com/goccl/goccl/a/x.go:9.31,10.15 1 0
github.com/goccl/goccl/a/x.go:13.2,13.14 1 2
github.com/goccl/goccl/a/x.go:16.14,16.15 0 0
github.com/goccl/goccl/a/b/y.go:3.20,3.51 1 7
github.com/goccl/goccl/test/ways/main.go:20.13,24.2 1 1
example.com/other/z.go:3.12,5.2 1 1
`), root)
	require.NoError(t, err)
	require.Equal(t, way{
		{file: "a/b/y.go", name: "Three", line: 3, lines: 1, branches: 1},
		{file: "a/x.go", name: "one", line: 3, lines: 3},
		{file: "a/x.go", name: "two", line: 7, lines: 8, branches: 4},
	}, w)
	require.Equal(t, [3]int{3, 2, 2}, w.count())
	_, err = readWay(strings.NewReader("github.com/goccl/goccl/a/none.go:3.12,5.2 1 1\n"), root)
	require.Error(t, err)
}
