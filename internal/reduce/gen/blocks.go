package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// blockCode is a code of package reduce for blocks of float32: a scale, and an integer each.
type blockCode struct {
	name     string
	elements int    // of a block
	halves   int    // that share bytes: of 4 bits the second half of a block lies above the first
	most     uint64 // the largest integer, as the bits of two float32
}

var blockCodes = []blockCode{
	{"Int8", 256, 1, 0x42fe000042fe0000},
	{"Int4", 64, 2, 0x40e0000040e00000},
}

// Constants of the code, in both float32 of 64 bits: see package reduce.
const (
	signless  = 0x7fffffff7fffffff
	belowTiny = 0x03ffffff03ffffff // the least magnitude that is no tiny one, less 1 bit
	infinite  = 0x7f8000007f800000
	aNaN      = 0x7fc000007fc00000
	scaleSize = 4 // bytes
)

// bytes is how many bytes the integers of a block take.
func (k blockCode) bytes() int { return k.elements / k.halves }

// signature is that of an encoder, or of a decoder, and its comment.
func (k blockCode) signature(verb, isa string) (name string, params []parameter, doc []string) {
	name = verb + k.name + isa
	params = []parameter{{"dst", pointer}, {"src", pointer}, {"blocks", "int"}}
	what := map[string]string{"encode": "encodes blocks of float32 at src, at least one.",
		"decode": "sets dst to what the blocks at src say, at least one, times by.",
		"add":    "adds to dst what the blocks at src say, at least one, times by."}[verb]
	if verb != "encode" {
		params = append(params, parameter{"by", "float32"})
	}
	return name, params, []string{fmt.Sprintf("%s %s", name, what)}
}

// verb is what a decoder does.
func verb(add bool) string {
	if add {
		return "add"
	}
	return "decode"
}

// beginBlocks writes the declaration, and returns the registers of its arguments.
func (g *gen) beginBlocks(k blockCode, verb string) (dst, src operand.Mem, blocks operand.Op) {
	name, params, doc := k.signature(verb, g.name)
	evex := g.evex
	g.evex = true // whole blocks: nothing is left out, and the comment says nothing of it
	g.begin(name, params, 0, doc)
	g.evex = evex
	return operand.Mem{Base: g.arg("dst")}, operand.Mem{Base: g.arg("src")}, g.arg("blocks")
}

// emitEncode writes the encoder of k.
func (g *gen) emitEncode(k blockCode) {
	dst, src, blocks := g.beginBlocks(k, "encode")
	for _, c := range []uint64{signless, k.most, belowTiny, infinite, aNaN} {
		g.constant(c)
	}
	if k.halves == 2 {
		g.constant(lowNibbles)
		g.constant(highNibbles)
	}
	var order operand.Op // of the bytes that packing in halves of 128 bits leaves out of order
	if !g.evex {
		order = g.vec()
		g.VMOVDQU(g.table, order)
	}
	lanes := g.vector / 4
	g.Label("block")
	tops := []operand.Op{g.vec(), g.vec()}
	for i := range k.elements / lanes {
		v := g.vec()
		if i < len(tops) {
			v = tops[i]
		}
		g.and(src.Offset(4*lanes*i), g.constant(signless), v)
		if i >= len(tops) {
			g.VPMAXSD(v, tops[i%2], tops[i%2])
		}
	}
	top := tops[0]
	g.VPMAXSD(tops[1], top, top)
	g.acrossLanes(top)

	scale, inverse, ok, finite := g.vec(), g.vec(), g.vec(), g.vec()
	g.VDIVPS(g.constant(k.most), top, scale)
	g.VDIVPS(top, g.constant(k.most), inverse)
	g.greater(top, g.constant(belowTiny), ok)
	g.greater(g.constant(infinite), top, finite)
	g.and(finite, ok, ok)
	g.and(ok, scale, scale)
	if g.evex {
		g.VPANDND(g.constant(aNaN), finite, finite)
		g.VPORD(finite, scale, scale)
	} else {
		g.VPANDN(g.constant(aNaN), finite, finite)
		g.VPOR(finite, scale, scale)
	}
	g.VMOVD(scale.(reg.Vec).AsX(), dst)

	// rounded is the integers of lanes elements.
	rounded := func(at int) operand.Op {
		v := g.vec()
		g.VMULPS(src.Offset(4*at), inverse, v)
		g.VCVTPS2DQ(v, v)
		return v
	}
	if g.evex {
		for at := 0; at < k.bytes(); at += lanes {
			v := rounded(at)
			if k.halves == 2 {
				high := rounded(at + k.bytes())
				g.VPSLLD(operand.U8(4), high, high)
				g.VPTERNLOGD(operand.U8(0xf8), g.constant(lowNibbles), v, high) // high | v & 15
				v = high
			}
			g.and(ok, v, v)
			g.VPMOVDB(v, dst.Offset(scaleSize+at))
		}
	} else {
		// bytes packs four registers of integers.
		bytes := func(at int) operand.Op {
			var v [4]operand.Op
			for i := range v {
				v[i] = rounded(at + i*lanes)
			}
			g.VPACKSSDW(v[1], v[0], v[0])
			g.VPACKSSDW(v[3], v[2], v[2])
			g.VPACKSSWB(v[2], v[0], v[0])
			return v[0]
		}
		for at := 0; at < k.bytes(); at += g.vector {
			v := bytes(at)
			if k.halves == 2 {
				high := bytes(at + k.bytes())
				g.VPSLLW(operand.U8(4), high, high)
				g.VPAND(g.constant(highNibbles), high, high)
				g.VPAND(g.constant(lowNibbles), v, v)
				g.VPOR(high, v, v)
			}
			g.VPAND(ok, v, v)
			g.VPERMD(v, order, v)
			g.VMOVDQU(v, dst.Offset(scaleSize+at))
		}
	}
	g.nextBlock(operand.Mem{Base: src.Base}, 4*k.elements, dst, scaleSize+k.bytes(), blocks)
}

const (
	lowNibbles  = 0x0f0f0f0f0f0f0f0f
	highNibbles = 0xf0f0f0f0f0f0f0f0
)

// emitDecode writes the decoder of k that adds to dst, or sets it.
func (g *gen) emitDecode(k blockCode, add bool) {
	dst, src, blocks := g.beginBlocks(k, verb(add))
	by := g.broadcastArg(4)
	zero := g.vec()
	g.VXORPS(zero, zero, zero)
	lanes := g.vector / 4
	g.Label("block")
	unit := g.vec()
	g.VBROADCASTSS(src, unit)
	g.VMULPS(by, unit, unit)
	put := func(v operand.Op, at int) {
		g.VCVTDQ2PS(v, v)
		g.VMULPS(unit, v, v)
		if add {
			g.VADDPS(dst.Offset(4*at), v, v)
		} else {
			g.VADDPS(zero, v, v) // so that no zero is negative
		}
		g.VMOVUPS(v, dst.Offset(4*at))
	}
	for at := 0; at < k.bytes(); at += lanes {
		v := g.vec()
		g.VPMOVSXBD(src.Offset(scaleSize+at), v)
		if k.halves == 2 {
			high := g.vec()
			g.VPSRAD(operand.U8(4), v, high)
			put(high, at+k.bytes())
			g.VPSLLD(operand.U8(28), v, v)
			g.VPSRAD(operand.U8(28), v, v)
		}
		put(v, at)
	}
	g.nextBlock(src, scaleSize+k.bytes(), dst, 4*k.elements, blocks)
}

// nextBlock ends the loop over blocks.
func (g *gen) nextBlock(src operand.Mem, from int, dst operand.Mem, to int, blocks operand.Op) {
	g.ADDQ(imm(from), src.Base)
	g.ADDQ(imm(to), dst.Base)
	g.DECQ(blocks)
	g.JNE(operand.LabelRef("block"))
	g.VZEROUPPER()
	g.RET()
}

// acrossLanes sets all lanes of v, integers that are not negative, to the largest.
func (g *gen) acrossLanes(v operand.Op) {
	x := g.vec()
	if g.evex {
		for _, halves := range []operand.U8{0x4e, 0xb1} { // of the register, and of each half
			g.VSHUFI32X4(halves, v, v, x)
			g.VPMAXSD(x, v, v)
		}
	} else {
		g.VPERM2I128(operand.U8(1), v, v, x)
		g.VPMAXSD(x, v, v)
	}
	for _, halves := range []operand.U8{0x4e, 0xb1} { // of 128 bits, and of 64
		g.VPSHUFD(halves, v, x)
		g.VPMAXSD(x, v, v)
	}
}

// greater sets the lanes of d where a is greater than b, as integers, to ones, and the others to zeros.
func (g *gen) greater(a, b, d operand.Op) {
	if g.evex {
		k := g.K()
		g.VPCMPGTD(b, a, k)
		g.VPMOVM2D(k, d)
		return
	}
	g.VPCMPGTD(b, a, d)
}

// packedTable is the permutation that puts the bytes in order which AVX2 packs in halves of 128 bits.
func packedTable(c *build.Context) operand.Mem {
	m := c.StaticGlobal("packed")
	c.DataAttributes(attr.RODATA | attr.NOPTR)
	for _, i := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		c.AppendDatum(operand.U32(i))
	}
	return m
}
