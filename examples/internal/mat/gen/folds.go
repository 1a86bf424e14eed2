package main

import (
	"math"
	"strings"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// numbers are the floats of a kernel, each in all lanes.
type numbers map[string]reg.VecVirtual

// folds writes the kernels with a result: element i goes into lane i mod 16, and the lanes are folded by halves.
func (g *gen) folds() {
	plus := func(a, b, dst operand.Op) { g.VADDPS(b, a, dst) }
	g.fold("sum", "x", "", "the sum of x", 0, plus, func(at []operand.Mem, _ numbers) operand.Op { return at[0] })
	g.fold("dot", "x y", "", "the sum of x[i]*y[i]", 0, plus,
		func(at []operand.Mem, _ numbers) operand.Op { return g.mulv(g.load(at[0]), at[1]) })
	g.fold("dot3", "x y z", "", "the sum of x[i]*y[i]*z[i]", 0, plus, func(at []operand.Mem, _ numbers) operand.Op {
		return g.mulv(g.mulv(g.load(at[0]), at[1]), at[2])
	})
	g.fold("squares", "x", "mean", "the sum of (x[i]-mean)^2", 0, plus, func(at []operand.Mem, f numbers) operand.Op {
		d := g.sub(g.load(at[0]), f["mean"])
		return g.mulv(d, d)
	})
	g.fold("most", "x", "", "the greatest of x", math.Inf(-1), func(a, b, dst operand.Op) { g.VMAXPS(b, a, dst) },
		func(at []operand.Mem, _ numbers) operand.Op { return at[0] })
}

// begin begins a kernel on n elements, which are a multiple of 16.
func (g *gen) begin(name string, vectors []string, floats string, result bool, doc string) numbers {
	g.function(name, []string{"n"}, vectors, strings.Fields(floats), result, doc)
	f := numbers{}
	for _, name := range strings.Fields(floats) {
		f[name] = g.scalar(name)
	}
	return f
}

// fold writes one: the loop over the elements, and the end.
func (g *gen) fold(name, vectors, floats, doc string, start float64, op func(a, b, dst operand.Op),
	term func(at []operand.Mem, f numbers) operand.Op) {
	pointers := strings.Fields(vectors)
	f := g.begin(name, pointers, floats, true, doc)
	first := g.f(start)
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
		op(acc[i], term(at, f), acc[i])
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
