package main

import (
	"math"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// folds writes the kernels with a result: element i goes into lane i mod 16, and the lanes are folded by halves.
func (g *gen) folds() {
	ints := []string{"n"}
	plus := func(a, b, dst operand.Op) { g.VADDPS(b, a, dst) }
	g.function("sum", ints, []string{"x"}, nil, true, "the sum of x")
	g.fold([]string{"x"}, g.f(0), plus, func(at []operand.Mem) operand.Op { return at[0] })
	g.function("dot", ints, []string{"x", "y"}, nil, true, "the sum of x[i]*y[i]")
	g.fold([]string{"x", "y"}, g.f(0), plus, func(at []operand.Mem) operand.Op { return g.mulv(g.load(at[0]), at[1]) })
	g.function("dot3", ints, []string{"x", "y", "z"}, nil, true, "the sum of x[i]*y[i]*z[i]")
	g.fold([]string{"x", "y", "z"}, g.f(0), plus, func(at []operand.Mem) operand.Op {
		return g.mulv(g.mulv(g.load(at[0]), at[1]), at[2])
	})
	g.function("squares", ints, []string{"x"}, []string{"mean"}, true, "the sum of (x[i]-mean)^2")
	mean := g.scalar("mean")
	g.fold([]string{"x"}, g.f(0), plus, func(at []operand.Mem) operand.Op {
		d := g.sub(g.load(at[0]), mean)
		return g.mulv(d, d)
	})
	g.function("most", ints, []string{"x"}, nil, true, "the greatest of x")
	g.fold([]string{"x"}, g.f(math.Inf(-1)), func(a, b, dst operand.Op) { g.VMAXPS(b, a, dst) },
		func(at []operand.Mem) operand.Op { return at[0] })
}

// fold writes the loop over n elements, which are a multiple of 16, and the end.
func (g *gen) fold(pointers []string, first operand.Mem, op func(a, b, dst operand.Op), term func(at []operand.Mem) operand.Op) {
	n := g.arg("n")
	var base []reg.GPVirtual
	for _, p := range pointers {
		base = append(base, g.arg(p))
	}
	acc := make([]reg.VecVirtual, 64/g.vector)
	for i := range acc {
		acc[i] = g.load(first)
	}
	g.Label("loop")
	for i := range acc {
		var at []operand.Mem
		for _, b := range base {
			at = append(at, operand.Mem{Base: b, Disp: i * g.vector})
		}
		op(acc[i], term(at), acc[i])
	}
	for _, b := range base {
		g.ADDQ(imm(64), b)
	}
	g.SUBQ(imm(16), n)
	g.JNE(operand.LabelRef("loop"))
	y := g.YMM()
	if g.evex {
		g.VEXTRACTF64X4(operand.U8(1), acc[0], y)
		op(acc[0].AsY(), y, y)
	} else {
		op(acc[0], acc[1], y)
	}
	x := g.XMM()
	g.VEXTRACTF128(operand.U8(1), y, x)
	op(y.AsX(), x, x)
	t := g.XMM()
	g.VPERMILPS(operand.U8(0x0e), x, t)
	op(x, t, x)
	g.VPERMILPS(operand.U8(0x01), x, t)
	op(x, t, x)
	g.VZEROUPPER()
	r, err := g.ReturnIndex(0).Resolve()
	if err != nil {
		panic(err) // each of these functions has a result
	}
	g.MOVSS(x, r.Addr)
	g.RET()
}
