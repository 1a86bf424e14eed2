package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sumAll is a kernel that adds any number of vectors of 16-bit floats. The sums stay in registers, as float32, until
// all are added.
type sumAll struct {
	name     string
	elem     elem
	unroll   int // steps of the main loop: as many sums as there are registers for
	weighted bool
}

// sumAlls lists the kernels that add any number of vectors.
func sumAlls(g *gen) []sumAll {
	steps := 4
	if !g.evex { // 16 registers
		steps = 2
	}
	return []sumAll{
		{"sumAllFloat16", half{}, 4, false}, {"sumAllBFloat16", bfloat{round: true}, steps, false},
		{"weighAllFloat16", half{}, 4, true}, {"weighAllBFloat16", bfloat{round: true}, steps, true},
	}
}

// emitSumAll writes k. Each step of its loop has a loop over the vectors in it.
func (g *gen) emitSumAll(k sumAll) {
	step := k.elem.step(g)
	lanes := step / k.elem.size()
	params, doc := sumSignature(k.name+g.name, k.weighted)
	g.begin(k.name+g.name, params, lanes, doc)
	dst, srcs, count, at, n := g.arg("dst"), g.arg("srcs"), g.arg("count"), g.arg("at"), g.arg("n")
	var w weights
	if k.weighted {
		w = weights{at: g.arg("weights"), stride: g.arg("stride"), ends: g.arg("ends")}
	}
	k.elem.setup(g)
	g.loop(n, lanes, k.unroll, func(steps int, mask operand.Op) {
		g.sumSteps(k, steps, mask, dst, srcs, count, at, w)
		g.ADDQ(imm(steps*step), at)
	})
	g.VZEROUPPER()
	g.RET()
}

// weights are where a kernel finds them.
type weights struct{ at, stride, ends reg.Register }

// sumSteps writes some steps from byte at on: all of them of the first vector, of the next, and so on.
func (g *gen) sumSteps(k sumAll, steps int, mask operand.Op, dst, srcs, count, at reg.Register, w weights) {
	place := func(base reg.Register, i int) operand.Mem {
		return operand.Mem{Base: base, Index: at, Scale: 1, Disp: i * k.elem.step(g)}
	}
	p, i := g.GP64(), g.GP64()
	var by operand.Op
	var nextWeight func()
	if k.weighted {
		by = g.vec()
		from := g.GP64()
		g.MOVQ(w.at, from)
		nextWeight = func() {
			g.VBROADCASTSS(operand.Mem{Base: from}, by)
			g.ADDQ(w.stride, from)
		}
	}
	weigh := func(v []operand.Op) []operand.Op {
		for _, x := range v {
			if k.weighted {
				g.VMULPS(by, x, x)
			}
		}
		return v
	}
	g.MOVQ(operand.Mem{Base: srcs}, p)
	if k.weighted {
		nextWeight()
	}
	sums := make([][]operand.Op, steps)
	for s := range sums {
		sums[s] = weigh(k.elem.load(g, place(p, s), mask))
	}
	next, added := g.label("next"), g.label("added")
	g.MOVQ(operand.I32(1), i)
	g.CMPQ(i, count)
	g.JGE(operand.LabelRef(added))
	g.Label(next)
	g.MOVQ(operand.Mem{Base: srcs, Index: i, Scale: 8}, p)
	if k.weighted {
		nextWeight()
	}
	for s := range sums {
		for v, x := range weigh(k.elem.load(g, place(p, s), mask)) {
			g.VADDPS(x, sums[s][v], sums[s][v])
		}
	}
	g.INCQ(i)
	g.CMPQ(i, count)
	g.JLT(operand.LabelRef(next))
	g.Label(added)
	if k.weighted {
		plain := g.label("plain")
		g.TESTQ(w.ends, w.ends)
		g.JZ(operand.LabelRef(plain))
		for _, end := range []struct {
			by string
			do func(...operand.Op)
		}{{"mul", g.VMULPS}, {"div", g.VDIVPS}} {
			p, err := g.Param(end.by).Resolve()
			if err != nil {
				panic(err) // it is one of the parameters above
			}
			g.VBROADCASTSS(p.Addr, by)
			for s := range sums {
				for _, x := range sums[s] {
					end.do(by, x, x)
				}
			}
		}
		g.Label(plain)
	}
	for s := range sums {
		k.elem.store(g, sums[s], place(dst, s), mask)
	}
}
