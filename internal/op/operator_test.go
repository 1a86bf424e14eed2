package op

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOperators(t *testing.T) {
	for o, name := range map[Op]string{Sum: "sum", Prod: "prod", Min: "min", Max: "max", Avg: "avg", BAnd: "band", BOr: "bor", BXor: "bxor", Ops: "none", Scaled - 1: "none", Scaled: "mulsum", 255: "mulsum"} {
		assert.Equal(t, name, o.String())
		assert.Equal(t, name != "none", o.Valid(), "%d", o)
		assert.Equal(t, name == "mulsum", o.Scales(), "%d", o)
	}
}

// Each operator is defined for the types that it has a meaning for; factors are for floats alone.
func TestReduces(t *testing.T) {
	for _, tc := range []struct {
		first, last Type
		ops         []Op
	}{
		{None, None, nil},
		{Int8, Uint64, []Op{Sum, Prod, Min, Max, Avg, BAnd, BOr, BXor}},
		{Float16, Float64, []Op{Sum, Prod, Min, Max, Avg, Scaled, 255}},
		{Float8E4M3, Float8E5M2, []Op{Sum, Prod, Min, Max, Avg}},
		{Bool, Bool, []Op{Min, Max, BAnd, BOr, BXor}},
		{Complex64, Complex128, []Op{Sum, Avg}},
		{Types, Types, nil},
	} {
		for typ := tc.first; typ <= tc.last; typ++ {
			for _, o := range []Op{Sum, Prod, Min, Max, Avg, BAnd, BOr, BXor, Ops, Scaled - 1, Scaled, 255} {
				assert.Equal(t, slices.Contains(tc.ops, o), Reduces(typ, o), "%v %d", typ, o)
			}
		}
	}
}
