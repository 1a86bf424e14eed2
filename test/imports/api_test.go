package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/require"
)

// public are the packages whose names users read about.
var public = []string{"ccl", "ccl/boot", "ccl/ccltest", "mpi", "gpu", "cuda", "rocm", "xpu",
	"train/amp", "train/ckpt", "train/data", "train/data/loader", "train/data/pack", "train/ddp", "train/device", "train/history", "train/history/events", "train/history/grads", "train/mesh", "train/mirror", "train/optim", "train/optim/whole", "train/pp", "train/sp", "train/tp", "train/zero"}

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

// Each exported name has a comment.
func TestNamesAreExplained(t *testing.T) {
	repo := os.DirFS("../..")
	for _, dir := range public {
		files := 0
		require.NoError(t, sources(repo, dir, func(name string, text []byte) error {
			if path.Dir(name) != dir {
				return nil
			}
			files++
			file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
			require.NoError(t, err)
			require.Empty(t, bare(file), name)
			return nil
		}))
		require.NotZero(t, files, dir)
	}
	planted := "package p\n\nfunc F() {}\n\ntype T struct{}\n\nfunc (t *T) M() {}\n\nfunc (t *u) N() {}\n\nvar V, w = 1, 2\n\n// G is told of.\nfunc G() {}\n"
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", planted, parser.ParseComments)
	require.NoError(t, err)
	require.Equal(t, []string{"F", "T", "T.M", "V"}, bare(file))
}
