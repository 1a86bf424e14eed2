package ccl

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// constants are the names of the constants of a file of this package that are of a type, in their order.
func constants(t *testing.T, file, of string) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, d := range f.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		if first, ok := g.Specs[0].(*ast.ValueSpec).Type.(*ast.Ident); !ok || first.Name != of {
			continue
		}
		for _, s := range g.Specs {
			names = append(names, s.(*ast.ValueSpec).Names[0].Name)
		}
	}
	return names
}

// The constants that users see are in the order of package op, under its names: so a number means one thing everywhere.
func TestOneVocabulary(t *testing.T) {
	for _, file := range []string{"type.go", "../mpi/type.go"} {
		types := constants(t, file, "Type")
		require.NotEmpty(t, types)
		for i, name := range types[1:] {
			if name == "typeEnd" || name == "typePlaced" {
				break
			}
			assert.Equal(t, "type"+op.Type(i+1).Go(), strings.ToLower(name), file)
		}
		ops := constants(t, file, "Op")
		require.NotEmpty(t, ops)
		for i, name := range ops {
			if name == "opEnd" || name == "opFirst" {
				break
			}
			assert.Equal(t, op.Op(i).String(), strings.ToLower(name), file)
		}
	}
	kinds := constants(t, "type.go", "Kind")
	require.Len(t, kinds, int(op.Kinds)+1)
	for i, name := range kinds[1:op.Kinds] {
		assert.Equal(t, "Kind"+op.Kind(i+1).String(), name)
	}
}
