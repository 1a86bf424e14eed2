package main

import (
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// elem is how elements come into registers and back. A step of a kernel is load,
// an op for each register, store. mask is nil for whole steps.
type elem interface {
	size() int       // bytes of an element
	step(g *gen) int // bytes of a step
	setup(g *gen)    // constants, before the loop
	load(g *gen, m operand.Mem, mask operand.Op) []operand.Op
	result(g *gen, i int) operand.Op // where the op is to put its i-th register
	store(g *gen, v []operand.Op, m operand.Mem, mask operand.Op)
}

// raw elements of that many bytes are computed as they are.
type raw int

// masked are the moves under a mask, by size of the elements.
var masked = map[raw]struct {
	load  func(c ctx, m, mask, v operand.Op)
	store func(c ctx, ops ...operand.Op)
}{
	1: {ctx.VMOVDQU8_Z, ctx.VMOVDQU8}, 2: {ctx.VMOVDQU16_Z, ctx.VMOVDQU16}, 4: {ctx.VMOVDQU32_Z, ctx.VMOVDQU32},
	8: {ctx.VMOVDQU64_Z, ctx.VMOVDQU64},
}

func (e raw) size() int                     { return int(e) }
func (raw) step(g *gen) int                 { return g.vector }
func (raw) setup(*gen)                      {}
func (raw) result(g *gen, _ int) operand.Op { return g.vec() }

func (e raw) load(g *gen, m operand.Mem, mask operand.Op) []operand.Op {
	v := g.vec()
	switch {
	case mask != nil:
		masked[e].load(g.Context, m, mask, v)
	case g.evex:
		g.VMOVDQU64(m, v)
	default:
		g.VMOVDQU(m, v)
	}
	return []operand.Op{v}
}

func (e raw) store(g *gen, v []operand.Op, m operand.Mem, mask operand.Op) {
	switch {
	case mask != nil:
		masked[e].store(g.Context, v[0], mask, m)
	case g.evex:
		g.VMOVDQU64(v[0], m)
	default:
		g.VMOVDQU(v[0], m)
	}
}

// half elements are converted to float32 and back by the CPU.
type half struct{}

func (half) size() int                       { return 2 }
func (half) step(g *gen) int                 { return g.vector / 2 }
func (half) setup(*gen)                      {}
func (half) result(g *gen, _ int) operand.Op { return g.vec() }

func (half) load(g *gen, m operand.Mem, mask operand.Op) []operand.Op {
	v := g.vec()
	if mask == nil {
		g.VCVTPH2PS(m, v)
	} else {
		g.VCVTPH2PS_Z(m, mask, v)
	}
	return []operand.Op{v}
}

func (half) store(g *gen, v []operand.Op, m operand.Mem, mask operand.Op) {
	const nearestEven = operand.U8(0)
	if mask == nil {
		g.VCVTPS2PH(nearestEven, v[0], m)
	} else {
		g.VCVTPS2PH(nearestEven, v[0], mask, m)
	}
}

// bfloat elements become two registers of float32: the elements at even places,
// moved up, and those at odd places, with the others masked out. No element
// crosses its 32 bits. Results are rounded by integer arithmetic, unless an op
// yields bfloats already.
type bfloat struct{ round bool }

const (
	odd   = 0xffff0000ffff0000 // the places of odd elements
	below = 0x00007fff00007fff // just below half a unit in the last place
	one   = 0x0000000100000001
	quiet = 0x0040000000400000 // the bit that makes a float32 NaN quiet
)

func (bfloat) size() int                       { return 2 }
func (bfloat) step(g *gen) int                 { return g.vector }
func (bfloat) result(g *gen, _ int) operand.Op { return g.vec() }

func (e bfloat) setup(g *gen) {
	g.constant(odd)
	if e.round {
		g.constant(below)
		g.constant(one)
		g.constant(quiet)
	}
}

func (bfloat) load(g *gen, m operand.Mem, mask operand.Op) []operand.Op {
	v := raw(2).load(g, m, mask)[0]
	x, y := g.vec(), g.vec()
	g.VPSLLD(operand.U8(16), v, x)
	g.and(v, g.constant(odd), y)
	return []operand.Op{x, y}
}

func (e bfloat) store(g *gen, v []operand.Op, m operand.Mem, mask operand.Op) {
	x, y := v[0], v[1]
	if e.round {
		x, y = g.roundBF16(x), g.roundBF16(y)
	}
	z := g.vec()
	g.VPSRLD(operand.U8(16), x, z)
	if g.evex {
		g.VPTERNLOGD(operand.U8(0xf8), g.constant(odd), y, z) // z | y & odd
	} else {
		g.VPBLENDW(operand.U8(0xaa), y, z, z)
	}
	raw(2).store(g, []operand.Op{z}, m, mask)
}

// roundBF16 rounds a float32 so that its upper half is the nearest bfloat16: it
// adds half a unit in the last place, or just less if that place is even, but
// makes NaNs quiet instead.
func (g *gen) roundBF16(x operand.Op) operand.Op {
	y := g.vec()
	g.VPSRLD(operand.U8(16), x, y)
	g.and(y, g.constant(one), y)
	g.VPADDD(x, y, y)
	g.VPADDD(y, g.constant(below), y)
	if g.evex {
		k := g.K()
		g.VCMPPS(unordered, x, x, k)
		g.VPORD(x, g.constant(quiet), k, y)
		return y
	}
	nan, z := g.vec(), g.vec()
	g.VCMPPS(unordered, x, x, nan)
	g.VPOR(x, g.constant(quiet), z)
	g.VBLENDVPS(nan, z, y, y)
	return y
}

func (g *gen) and(x, y, z operand.Op) {
	if g.evex {
		g.VPANDD(x, y, z)
	} else {
		g.VPAND(x, y, z)
	}
}

// bfloatCVT is bfloat with rounding by AVX512_BF16's VCVTNE2PS2BF16. That flushes
// denormals, so steps that have any go through bfloat's store.
type bfloatCVT struct{ bfloat }

// The instruction is unknown to Go's assembler, so its registers are fixed: Z0 has
// the results of the even elements, Z1 of the odd ones, and Z2 becomes both, the
// even ones in its lower half.
var even32, odd32, both16 = reg.Z0, reg.Z1, reg.Z2

func (bfloatCVT) result(_ *gen, i int) operand.Op { return []operand.Op{even32, odd32}[i] }

func (bfloatCVT) setup(g *gen) {
	bfloat{round: true}.setup(g)
	g.order = g.vec()
	g.VMOVDQU64(g.table, g.order)
}

func (bfloatCVT) store(g *gen, v []operand.Op, m operand.Mem, mask operand.Op) {
	exact := bfloat{round: true}
	if mask != nil {
		exact.store(g, v, m, mask)
		return
	}
	const denormal = operand.U8(0x20)
	slow, done := g.label("slow"), g.label("done")
	k, l := g.K(), g.K()
	g.VFPCLASSPSZ(denormal, even32, k)
	g.VFPCLASSPSZ(denormal, odd32, l)
	g.KORTESTW(k, l)
	g.JNE(operand.LabelRef(slow))
	in, out := []operand.Op{even32, odd32}, []operand.Op{both16}
	g.Comment("VCVTNE2PS2BF16 Z0, Z1, Z2")
	g.Instruction(&ir.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(0x4877f262)}, Inputs: in,
		Outputs: out})
	g.Instruction(&ir.Instruction{Opcode: "WORD", Operands: []operand.Op{operand.U16(0xd072)},
		Inputs: append(in, both16), Outputs: out})
	z := g.vec()
	g.VPERMW(both16, g.order, z)
	g.VMOVDQU64(z, m)
	g.Label(done)
	g.cold = append(g.cold, func() {
		g.Label(slow)
		exact.store(g, v, m, nil)
		g.JMP(operand.LabelRef(done))
	})
}

// interleaveTable is the permutation that puts the halves of both16 in turn.
func interleaveTable(c *build.Context) operand.Mem {
	m := c.StaticGlobal("interleave")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for i := range 16 {
		c.AppendDatum(operand.U16(i))
		c.AppendDatum(operand.U16(16 + i))
	}
	return m
}
