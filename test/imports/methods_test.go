package imports

import (
	"bytes"
	"flag"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var write = flag.Bool("write", false, "write the methods of cuda's and rocm's types into their comments")

const methodsFollow = " Its methods:"

// methods are the exported methods of the types of internal/gpu, each as its declaration and what it does, as the
// comment of an alias of the type lists them.
func methods(t *testing.T) map[string][]string {
	fset := token.NewFileSet()
	names, err := filepath.Glob("../../internal/gpu/*.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		require.NoError(t, err)
		files = append(files, file)
	}
	pkg, err := doc.NewFromFiles(fset, files, "gpu")
	require.NoError(t, err)
	list := map[string][]string{}
	for _, typ := range pkg.Types {
		for _, m := range typ.Methods {
			if m.Name == "String" || m.Name == "Error" || m.Name == "Unwrap" {
				continue
			}
			var decl bytes.Buffer
			require.NoError(t, format.Node(&decl, fset, m.Decl.Type))
			list[typ.Name] = append(list[typ.Name], "\t"+m.Name+strings.TrimPrefix(decl.String(), "func"))
			for _, line := range wrap(pkg.Synopsis(m.Doc), 90) {
				list[typ.Name] = append(list[typ.Name], "\t    "+line)
			}
		}
	}
	return list
}

// wrap breaks text into lines of at most width bytes.
func wrap(text string, width int) (lines []string) {
	for word := range strings.FieldsSeq(text) {
		if last := len(lines) - 1; last >= 0 && len(lines[last])+1+len(word) <= width {
			lines[last] += " " + word
		} else {
			lines = append(lines, word)
		}
	}
	return lines
}

// listed is src with the methods in the comment of each alias of a type that has some.
func listed(src string, methods map[string][]string) string {
	var out []string
	inList := false
	for line := range strings.SplitSeq(src, "\n") {
		if strings.HasPrefix(line, "//") && strings.HasSuffix(line, methodsFollow) {
			out, inList = append(out, strings.TrimSuffix(line, methodsFollow)), true
			continue
		}
		if inList && strings.HasPrefix(line, "//") {
			continue
		}
		inList = false
		if _, of, ok := strings.Cut(line, " = gpu."); ok && strings.HasPrefix(line, "type ") {
			of, _, _ = strings.Cut(of, "[")
			if list := methods[of]; list != nil {
				out[len(out)-1] += methodsFollow
				out = append(out, "//")
				for _, m := range list {
					out = append(out, "//"+m)
				}
			}
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

// TestMethodsAreShown checks that cuda and rocm show the methods of their types, which are aliases: go doc shows those of
// a type that the package itself declares. Run it with -args -write after a change to internal/gpu.
func TestMethodsAreShown(t *testing.T) {
	list := methods(t)
	require.True(t, slices.Contains(list["Graph"], "\tLaunch(s *Stream) error"), "%q", list["Graph"])
	for _, name := range []string{"../../cuda/cuda.go", "../../rocm/rocm.go"} {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		want := listed(string(src), list)
		if *write {
			require.NoError(t, os.WriteFile(name, []byte(want), 0o644))
			continue
		}
		require.Equal(t, want, string(src), "go test ./test/imports -run TestMethodsAreShown -args -write")
		require.Equal(t, map[string]int{"cuda.go": 8, "rocm.go": 6}[filepath.Base(name)], strings.Count(want, methodsFollow), name)
	}
	planted := "// A T is one. Its methods:\n//\n//\tOld()\n//\t    Old is gone.\ntype T = gpu.T\n\n// U is none.\ntype U = gpu.U\n"
	require.Equal(t, "// A T is one. Its methods:\n//\n//\tF()\n//\t    F does.\ntype T = gpu.T\n\n// U is none.\ntype U = gpu.U\n",
		listed(planted, map[string][]string{"T": {"\tF()", "\t    F does."}}))
}
