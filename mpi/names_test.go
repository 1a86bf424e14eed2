//go:build !mpi || !cgo

package mpi_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exported are the names of the package, each with whether it is a function or a method, which the table of names must have.
func exported(t *testing.T) (names map[string]bool, doc string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	names = map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		require.NoError(t, err)
		if name == "doc.go" {
			doc = file.Doc.Text()
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if of, ok := receiver(d); ok && d.Name.IsExported() {
					names[of+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok && s.Name.IsExported() {
						names[s.Name.Name] = false
						fields(s, names)
					}
				}
			}
		}
	}
	return names, doc
}

// receiver is "Comm." of a method, "" of a function. ok is false for what the standard library's interfaces ask for, and for
// methods of types that are not exported.
func receiver(d *ast.FuncDecl) (of string, ok bool) {
	if d.Recv == nil {
		return "", true
	}
	typ := d.Recv.List[0].Type
	if star, is := typ.(*ast.StarExpr); is {
		typ = star.X
	}
	name, is := typ.(*ast.Ident)
	if !is || !name.IsExported() {
		return "", false
	}
	switch d.Name.Name {
	case "String", "Error", "Is", "Unwrap":
		return "", false
	}
	return name.Name + ".", true
}

func fields(s *ast.TypeSpec, names map[string]bool) {
	typ, ok := s.Type.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range typ.Fields.List {
		for _, n := range f.Names {
			if n.IsExported() {
				names[s.Name.Name+"."+n.Name] = false
			}
		}
	}
}

// named are the names of the last column of the table in doc, without what is said of them.
func named(doc string) (names []string) {
	_, table, _ := strings.Cut(doc, "# Names\n")
	head, table, _ := strings.Cut(table, "here\n")
	column := len(head) - strings.LastIndex(head, "\n") - 1
	table, _, _ = strings.Cut(table, "\n# ")
	for line := range strings.Lines(table) {
		if len(line) <= column {
			continue
		}
		for name := range strings.SplitSeq(strings.TrimSpace(line[column:]), ", ") {
			if !strings.Contains(name, " ") {
				names = append(names, name)
			}
		}
	}
	return names
}

// TestTableOfNames: the table in the package's comment has each exported function and method once, and nothing that there is not.
func TestTableOfNames(t *testing.T) {
	names, doc := exported(t)
	seen := map[string]bool{}
	for _, name := range named(doc) {
		require.Contains(t, names, name, "the table has it, but not the package")
		require.False(t, seen[name], "%s is there twice", name)
		seen[name] = true
	}
	var missing []string
	for name, function := range names {
		if function && !seen[name] {
			missing = append(missing, name)
		}
	}
	require.Empty(t, missing, "functions that the table lacks")
	require.Greater(t, len(seen), 60)
}

// TestTableOfNamesReads: the table is read as it is written.
func TestTableOfNamesReads(t *testing.T) {
	doc := "x\n\n# Names\n\n\tMPI   py   here\n\tSend  Send Send, Comm.Do\n\t-     -    Comm.AllGather, of bytes\n\tIN    IN   one slice given twice\n\n# Errors\n\n\ta b c d e f\n"
	require.Equal(t, []string{"Send", "Comm.Do", "Comm.AllGather"}, named(doc))
}
