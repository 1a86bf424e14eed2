package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// public are the packages whose names users read about.
var public = []string{"ccl", "ccl/boot", "ccl/ccltest", "mpi", "cuda", "rocm", "xpu",
	"train/ckpt", "train/data", "train/ddp", "train/history", "train/mesh", "train/optim", "train/pp", "train/sp", "train/tp", "train/zero"}

// bare are the exported functions, methods, types, constants and variables of a file that no comment tells of.
func bare(file *ast.File) (names []string) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			of := ""
			if d.Recv != nil {
				if of = receiver(d.Recv.List[0].Type); !ast.IsExported(of) {
					continue
				}
				of += "."
			}
			if d.Name.IsExported() && d.Doc == nil {
				names = append(names, of+d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, s.Name.Name)
					}
				case *ast.ValueSpec:
					for _, n := range s.Names {
						if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
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
	return ""
}

// Each exported name has a comment.
func TestNamesAreExplained(t *testing.T) {
	for _, dir := range public {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		require.NoError(t, err)
		require.NotEmpty(t, files, dir)
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
			require.NoError(t, err)
			require.Empty(t, bare(file), path)
		}
	}
	planted := "package p\n\nfunc F() {}\n\ntype T struct{}\n\nfunc (t *T) M() {}\n\nfunc (t *u) N() {}\n\nvar V, w = 1, 2\n\n// G is told of.\nfunc G() {}\n"
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", planted, parser.ParseComments)
	require.NoError(t, err)
	require.Equal(t, []string{"F", "T", "T.M", "V"}, bare(file))
}
