package main

import (
	"cmp"
	"fmt"
	"go/types"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// gen writes kernels for one instruction set.
type gen struct {
	*build.Context
	name   string
	vector int         // bytes of a register
	evex   bool        // AVX-512: masks, 32 registers
	table  operand.Mem // interleaveTable or packedTable

	// Of the function being written:
	consts map[uint64]operand.Op
	order  operand.Op // table in a register
	cold   []func()   // code that goes behind its return
	labels int
}

// kernel is one assembly function.
type kernel struct {
	name   string
	isa    string // if other than gen's
	does   string // what dst[i] becomes, for its comment
	form   form
	elem   elem
	op     op
	stream bool // non-temporal stores
}

// unroll is how many steps an iteration of the main loop takes. Four cover the
// latency of an addition and the loop's own instructions.
const unroll = 4

// goTypes are the types of parameters.
var goTypes = map[string]types.Type{
	pointer: types.Typ[types.UnsafePointer], "int": types.Typ[types.Int], "float32": types.Typ[types.Float32],
	"float64": types.Typ[types.Float64],
}

// emit writes k.
func (g *gen) emit(k kernel) {
	isa := cmp.Or(k.isa, g.name)
	step := k.elem.step(g)
	lanes := step / k.elem.size()
	divisor := "float32"
	if k.elem.size() == 8 {
		divisor = "float64"
	}
	g.begin(k.name+isa, k.form.params(divisor), lanes, k.doc(isa))
	var at []operand.Mem
	for _, name := range k.form.pointers() {
		at = append(at, operand.Mem{Base: g.arg(name)})
	}
	n := g.arg("n")
	var by operand.Op
	if k.form == scale {
		by = g.broadcastArg(k.elem.size())
	}
	for _, x := range k.op.consts {
		g.constant(x)
	}
	k.elem.setup(g)

	g.loop(n, lanes, unroll, func(count int, mask operand.Op) {
		for i := range count {
			g.step(k, at, i*step, by, mask)
		}
		if mask == nil { // else it is the last step
			for _, m := range at {
				g.ADDQ(imm(count*step), m.Base)
			}
		}
	})
	if k.stream {
		g.SFENCE()
	}
	g.VZEROUPPER()
	g.RET()
	for _, f := range g.cold {
		f()
	}
}

// begin writes the declaration of a function whose steps take so many elements.
func (g *gen) begin(name string, params []parameter, lanes int, doc []string) {
	var vars []*types.Var
	for _, p := range params {
		vars = append(vars, types.NewParam(0, nil, p.name, goTypes[p.typ]))
	}
	g.Function(name)
	g.Attributes(attr.NOSPLIT)
	g.Signature(gotypes.NewSignature(nil, types.NewSignatureType(nil, nil, nil, types.NewTuple(vars...), nil, false)))
	g.Pragma("noescape")
	if !g.evex {
		doc = append(doc, fmt.Sprintf("It leaves out the last n%%%d elements.", lanes))
	}
	g.Doc(doc...)
	g.consts, g.cold, g.labels = map[uint64]operand.Op{}, nil, 0
}

// loop writes a loop of unrolled steps, one of single ones and, where there are masks, a step that
// is masked for the rest.
func (g *gen) loop(n reg.Register, lanes, unroll int, steps func(count int, mask operand.Op)) {
	g.SUBQ(imm(unroll*lanes), n)
	g.JLT(operand.LabelRef("ones"))
	g.Label("loop")
	steps(unroll, nil)
	g.SUBQ(imm(unroll*lanes), n)
	g.JGE(operand.LabelRef("loop"))
	g.Label("ones")
	g.ADDQ(imm((unroll-1)*lanes), n)
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
}

// doc is the comment of k's declaration.
func (k kernel) doc(isa string) []string {
	doc := []string{fmt.Sprintf("%s%s computes: for i := range n { dst[i] = %s }", k.name, isa, k.does)}
	switch {
	case k.form == both:
		doc = append(doc, "and other[i] likewise, with non-temporal stores: dst and other are aligned to 64 bytes.")
	case k.stream:
		doc = append(doc, "with non-temporal stores: dst is aligned to 64 bytes.")
	}
	return doc
}

// step writes one step at offset off: load, compute, store.
func (g *gen) step(k kernel, at []operand.Mem, off int, by, mask operand.Op) {
	dst := at[0].Offset(off)
	if k.form == move {
		k.store(g, k.elem.load(g, at[1].Offset(off), mask), dst, mask)
		return
	}
	var x, y []operand.Op
	if k.form == scale {
		x = k.elem.load(g, dst, mask)
	} else {
		operands := at[len(at)-2:]
		x = k.elem.load(g, operands[0].Offset(off), mask)
		y = k.elem.load(g, operands[1].Offset(off), mask)
	}
	z := make([]operand.Op, len(x))
	for i := range x {
		z[i] = k.elem.result(g, i)
		if k.form == scale {
			k.op.do(g, x[i], by, z[i])
		} else {
			k.op.do(g, x[i], y[i], z[i])
		}
	}
	k.store(g, z, dst, mask)
	if k.form == both {
		k.store(g, z, at[1].Offset(off), mask)
	}
}

func (k kernel) store(g *gen, v []operand.Op, m operand.Mem, mask operand.Op) {
	if k.stream && mask == nil {
		g.VMOVNTDQ(v[0], m)
		return
	}
	k.elem.store(g, v, m, mask)
}

// arg is a register with an argument.
func (g *gen) arg(name string) reg.Register {
	p, err := g.Param(name).Resolve()
	if err != nil {
		panic(err) // params and the names here are this program's
	}
	r := g.GP64()
	g.MOVQ(p.Addr, r)
	return r
}

// broadcastArg is a vector of the argument by, of size bytes or, if those are 2, 4.
func (g *gen) broadcastArg(size int) operand.Op {
	p, err := g.Param("by").Resolve()
	if err != nil {
		panic(err)
	}
	v := g.vec()
	if size == 8 {
		g.VBROADCASTSD(p.Addr, v)
	} else {
		g.VBROADCASTSS(p.Addr, v)
	}
	return v
}

// mask has a bit for each of the n elements that are left.
func (g *gen) mask(n reg.Register) operand.Op {
	bits, k := g.GP64(), g.K()
	g.MOVQ(operand.I32(-1), bits)
	g.BZHIQ(n, bits, bits)
	g.KMOVQ(bits, k)
	return k
}

// vec is a new register.
func (g *gen) vec() operand.Op {
	if g.evex {
		return g.ZMM()
	}
	return g.YMM()
}

// constant is a register with x in every 64 bits. All are made before the loop.
func (g *gen) constant(x uint64) operand.Op {
	if v := g.consts[x]; v != nil {
		return v
	}
	r, v := g.GP64(), g.vec()
	g.MOVQ(operand.U64(x), r)
	if g.evex {
		g.VPBROADCASTQ(r, v)
	} else {
		low := g.XMM()
		g.VMOVQ(r, low)
		g.VPBROADCASTQ(low, v)
	}
	g.consts[x] = v
	return v
}

// label is a new label.
func (g *gen) label(name string) string {
	g.labels++
	return fmt.Sprintf("%s%d", name, g.labels)
}

// imm is an immediate operand of the size that instructions on pointers take.
func imm(x int) operand.Op { return operand.I32(x) }
