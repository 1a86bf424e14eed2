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
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
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
