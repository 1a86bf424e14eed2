package main

import (
	"fmt"
	"go/types"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sumAll is a kernel that adds any number of vectors of 16-bit floats. The sums stay in registers, as float32, until
// all are added.
type sumAll struct {
	name   string
	elem   elem
	unroll int // steps of the main loop: as many sums as there are registers for
}

// sumAlls lists the kernels that add any number of vectors.
func sumAlls(g *gen) []sumAll {
	steps := 4
	if !g.evex { // 16 registers
		steps = 2
	}
	return []sumAll{{"sumAllFloat16", half{}, 4}, {"sumAllBFloat16", bfloat{round: true}, steps}}
}

// emitSumAll writes k: a loop of unrolled steps, a loop of single ones and, where there are masks, one that is masked
// for the rest. Each step has a loop over the vectors in it.
func (g *gen) emitSumAll(k sumAll) {
	step := k.elem.step(g)
	lanes := step / k.elem.size()
	var ps []*types.Var
	for _, p := range []struct {
		name string
		typ  types.Type
	}{{"dst", pointer}, {"srcs", pointer}, {"count", integer}, {"at", integer}, {"n", integer}} {
		ps = append(ps, types.NewParam(0, nil, p.name, p.typ))
	}
	doc := []string{
		k.name + g.name + " computes: for i := range n { dst[i] = srcs[0][i] + ... + srcs[count-1][i] }",
		"in float32, each vector from byte at on. srcs is an array of count pointers, 1 or more.",
	}
	if !g.evex {
		doc = append(doc, fmt.Sprintf("It leaves out the last n%%%d elements.", lanes))
	}
	g.Function(k.name + g.name)
	g.Attributes(attr.NOSPLIT)
	g.Signature(gotypes.NewSignature(nil, types.NewSignatureType(nil, nil, nil, types.NewTuple(ps...), nil, false)))
	g.Pragma("noescape")
	g.Doc(doc...)
	g.consts, g.cold, g.labels = map[uint64]operand.Op{}, nil, 0

	dst, srcs, count, at, n := g.arg("dst"), g.arg("srcs"), g.arg("count"), g.arg("at"), g.arg("n")
	k.elem.setup(g)
	steps := func(many int, mask operand.Op) {
		g.sumSteps(k, many, mask, dst, srcs, count, at)
		g.ADDQ(imm(many*step), at)
	}
	g.SUBQ(imm(k.unroll*lanes), n)
	g.JLT(operand.LabelRef("ones"))
	g.Label("loop")
	steps(k.unroll, nil)
	g.SUBQ(imm(k.unroll*lanes), n)
	g.JGE(operand.LabelRef("loop"))
	g.Label("ones")
	g.ADDQ(imm((k.unroll-1)*lanes), n)
	g.JLT(operand.LabelRef("rest"))
	g.Label("one")
	steps(1, nil)
	g.SUBQ(imm(lanes), n)
	g.JGE(operand.LabelRef("one"))
	g.Label("rest")
	if g.evex {
		g.ADDQ(imm(lanes), n)
		g.JEQ(operand.LabelRef("done"))
		steps(1, g.mask(n))
		g.Label("done")
	}
	g.VZEROUPPER()
	g.RET()
}

// sumSteps writes some steps from byte at on: all of them of the first vector, of the next, and so on.
func (g *gen) sumSteps(k sumAll, steps int, mask operand.Op, dst, srcs, count, at reg.Register) {
	place := func(base reg.Register, i int) operand.Mem {
		return operand.Mem{Base: base, Index: at, Scale: 1, Disp: i * k.elem.step(g)}
	}
	p, i := g.GP64(), g.GP64()
	g.MOVQ(operand.Mem{Base: srcs}, p)
	sums := make([][]operand.Op, steps)
	for s := range sums {
		sums[s] = k.elem.load(g, place(p, s), mask)
	}
	next, added := g.label("next"), g.label("added")
	g.MOVQ(operand.I32(1), i)
	g.CMPQ(i, count)
	g.JGE(operand.LabelRef(added))
	g.Label(next)
	g.MOVQ(operand.Mem{Base: srcs, Index: i, Scale: 8}, p)
	for s := range sums {
		for v, x := range k.elem.load(g, place(p, s), mask) {
			g.VADDPS(x, sums[s][v], sums[s][v])
		}
	}
	g.INCQ(i)
	g.CMPQ(i, count)
	g.JLT(operand.LabelRef(next))
	g.Label(added)
	for s := range sums {
		k.elem.store(g, sums[s], place(dst, s), mask)
	}
}
