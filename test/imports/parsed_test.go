package imports

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
)

// source is a parsed file.
type source struct {
	*ast.File
	name string
	text []byte
	fset *token.FileSet
}

// at is where n is, as file:line.
func (s *source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.name, s.fset.Position(n.Pos()).Line)
}

// below calls f for each of sources, parsed.
func below(files fs.FS, dir string, f func(*source)) error {
	return sources(files, dir, func(name string, text []byte) error {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		f(&source{file, name, text, fset})
		return nil
	})
}

// in calls f for each of the sources in dir itself.
func in(files fs.FS, dir string, f func(*source)) error {
	return below(files, dir, func(s *source) {
		if path.Dir(s.name) == dir {
			f(s)
		}
	})
}

// each calls f for each node of a type in n.
func each[N ast.Node](n ast.Node, f func(N)) {
	ast.Inspect(n, func(n ast.Node) bool {
		if x, ok := n.(N); ok {
			f(x)
		}
		return true
	})
}

// specs yields the types, or the constants and variables, that a file declares outside of functions.
func specs[S ast.Spec](file *ast.File) func(yield func(S) bool) {
	return func(yield func(S) bool) {
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if s, ok := spec.(S); ok && !yield(s) {
					return
				}
			}
		}
	}
}

// nameOf is the function that a declaration is.
func nameOf(d ast.Decl) string {
	if f, ok := d.(*ast.FuncDecl); ok {
		return f.Name.Name
	}
	return "the file"
}

func isIdent(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == name
}

// isOf reports whether e is name of package pkg, or a pointer to it.
func isOf(e ast.Expr, pkg, name string) bool {
	if p, ok := e.(*ast.StarExpr); ok {
		e = p.X
	}
	s, ok := e.(*ast.SelectorExpr)
	return ok && s.Sel.Name == name && isIdent(s.X, pkg)
}
