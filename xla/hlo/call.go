package hlo

import (
	"fmt"
	"strings"
)

// Array is the type and the dimensions of a value that is to be.
type Array struct {
	Type Type
	Dims []int
}

// Call writes a custom call of API version 2: out are its results, and the layouts list axes, the
// fastest first. It has no gradient: see With. The target is code of the plugin; what it does with
// operands that it does not expect, a crash included, is its own: neither target nor config may
// come from a user.
func (f *Func) Call(target, config string, inLayouts, outLayouts [][]int, out []Array, in ...*Value) []*Value {
	layouts := func(l [][]int) string {
		var p []string
		for _, x := range l {
			p = append(p, fmt.Sprintf("dense<[%s]> : tensor<%dxindex>", list(x), len(x)))
		}
		return "[" + strings.Join(p, ", ") + "]"
	}
	results := make([]*Value, len(out))
	for i, a := range out {
		f.check(a.Type, a.Dims)
		results[i] = f.value(a.Type, a.Dims, in)
	}
	if len(out) == 0 || len(inLayouts) != len(in) || len(outLayouts) != len(out) {
		f.fail("Call: %d operands with %d layouts, %d results with %d", len(in), len(inLayouts), len(out), len(outLayouts))
		return results
	}
	f.write(results, "stablehlo.custom_call",
		fmt.Sprintf("{api_version = 2 : i32, call_target_name = %s, backend_config = %s, has_side_effect = false, "+
			"called_computations = [], operand_layouts = %s, result_layouts = %s}", quoted(target), quoted(config),
			layouts(inLayouts), layouts(outLayouts)), in)
	return results
}

// quoted is s as a string of MLIR's.
func quoted(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			fmt.Fprintf(&b, "\\%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
