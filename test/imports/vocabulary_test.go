package imports

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/goccl/goccl/internal/op"
)

// fewest is how many names of op's in one list of constants make it a second list.
const fewest = 3

// vocabulary are the names of kinds, types and operators.
func vocabulary() map[string]bool {
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
	return names
}

// There is one list of kinds, types and operators: a second one drifts away from it. It has constants with iota under names of package
// op, whatever stands before the name.
var oneVocabulary = rule{
	name: "there is one vocabulary", dirs: []string{"."},
	finds: func(src *source, bad func(string)) {
		names := vocabulary()
		for _, d := range src.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			known, counts := 0, false
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				counts = counts || len(v.Values) == 1 && isIdent(v.Values[0], "iota")
				if names[strings.ToLower(v.Names[0].Name)] {
					known++
				}
			}
			if counts && known >= fewest {
				bad(src.name)
			}
		}
	},
	allowed: []string{
		"internal/op/kind.go",                // the list
		"internal/op/type.go",                // the list
		"internal/op/operator.go",            // the list
		"ccl/type.go",                        // what users see: a test compares it with the list
		"mpi/type.go",                        // what users see: a test compares it with the list
		"mpi/call.go",                        // functions of MPI, which has others
		"ccl/internal/native/oneccl/plan.go", // functions of oneCCL, as call.c numbers them
		"interop/empi/shim/mpi/op.go",        // the interface of another library
	},
	planted: map[string]string{
		"a/types.go":  "package a\n\ntype Type uint8\n\nconst (\n\tInt8 Type = iota\n\tUint8\n\tInt16\n)\n",
		"a/kinds.go":  "package a\n\nconst (\n\t_ = iota\n\tkindAllReduce\n\tkindReduce\n\tkindBroadcast\n)\n",
		"a/derive.go": "package a\n\nconst (\n\tA = iota\n\tSum\n\tMin\n)\n\nconst (\n\tAllReduce = op.AllReduce\n\tReduce = op.Reduce\n\tGather = op.Gather\n)\n",
	},
	want: []string{"a/kinds.go", "a/types.go"},
}
