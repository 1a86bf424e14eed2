package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/op"
)

// numbering are the files that may number kinds, types or operators, with the reason.
var numbering = map[string]string{
	"internal/op/kind.go":                "the list",
	"internal/op/type.go":                "the list",
	"internal/op/operator.go":            "the list",
	"ccl/type.go":                        "what users see: a test compares it with the list",
	"mpi/type.go":                        "what users see: a test compares it with the list",
	"mpi/call.go":                        "functions of MPI, which has others",
	"ccl/internal/native/oneccl/plan.go": "functions of oneCCL, as call.c numbers them",
	"interop/empi/shim/mpi/op.go":        "the interface of another library",
}

// fewest is how many names of op's in one list of constants make it a second list.
const fewest = 3

// numbered are the files below dir that number kinds, types or operators: constants with iota under names of package op, whatever
// stands before the name.
func numbered(files fs.FS, dir string) (list []string, err error) {
	names := map[string]bool{}
	for k := op.AllReduce; k < op.Kinds; k++ {
		names[k.Flag()], names["kind"+k.Flag()] = true, true
	}
	for t := op.Int8; t < op.Types; t++ {
		names[t.Go()], names["type"+t.Go()] = true, true
	}
	for o := range op.Ops {
		names[o.String()], names["op"+o.String()] = true, true
	}
	err = sources(files, dir, func(name string, text []byte) error {
		file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			known, counts := 0, false
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				if len(v.Values) == 1 {
					id, ok := v.Values[0].(*ast.Ident)
					counts = counts || ok && id.Name == "iota"
				}
				if names[strings.ToLower(v.Names[0].Name)] {
					known++
				}
			}
			if counts && known >= fewest && !slices.Contains(list, name) {
				list = append(list, name)
			}
		}
		return nil
	})
	return list, err
}

// There is one list of kinds, types and operators. A second one drifts away from it.
func TestOneVocabulary(t *testing.T) {
	found, err := numbered(os.DirFS("../.."), ".")
	require.NoError(t, err)
	for _, name := range found {
		require.NotEmpty(t, numbering[name], "%s numbers kinds, types or operators: take internal/op's", name)
	}
	for name, why := range numbering {
		require.Contains(t, found, name, "it numbers nothing any more: take it from the list (%s)", why)
	}
}

func TestOneVocabularyFinds(t *testing.T) {
	found, err := numbered(fstest.MapFS{
		"a/types.go":  {Data: []byte("package a\n\ntype Type uint8\n\nconst (\n\tInt8 Type = iota\n\tUint8\n\tInt16\n)\n")},
		"a/kinds.go":  {Data: []byte("package a\n\nconst (\n\t_ = iota\n\tkindAllReduce\n\tkindReduce\n\tkindBroadcast\n)\n")},
		"a/derive.go": {Data: []byte("package a\n\nconst (\n\tA = iota\n\tSum\n\tMin\n)\n\nconst (\n\tAllReduce = op.AllReduce\n\tReduce = op.Reduce\n\tGather = op.Gather\n)\n")},
	}, ".")
	require.NoError(t, err)
	require.Equal(t, []string{"a/kinds.go", "a/types.go"}, found)
}
