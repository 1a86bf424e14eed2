package main

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack writes the kernels that lay parts of matrices side by side, as the register kernel with so many rows reads them.
// Strides are in elements.
func (g *gen) pack(rows int) {
	columns := 2 * g.lanes()
	g.function("pack", []string{"k", "stride"}, []string{"p", "b"}, nil, false,
		"p[i*columns+j] = b[i*stride+j] for i < k, j < columns.")
	k, stride, p, b := g.arg("k"), g.arg("stride"), g.arg("p"), g.arg("b")
	g.SHLQ(operand.U8(2), stride)
	g.Label("loop")
	for j := range 2 {
		v := g.vec()
		g.VMOVUPS(operand.Mem{Base: b, Disp: j * g.vector}, v)
		g.VMOVUPS(v, operand.Mem{Base: p, Disp: j * g.vector})
	}
	g.ADDQ(stride, b)
	g.ADDQ(imm(2*g.vector), p)
	g.DECQ(k)
	g.JNZ(operand.LabelRef("loop"))
	g.end()
	g.packT(columns)
	g.packRows(rows)
}

// packT writes the kernel that transposes blocks of 8 x 8.
func (g *gen) packT(columns int) {
	g.function("packT", []string{"k", "stride"}, []string{"p", "b"}, nil, false,
		"p[i*columns+j] = b[j*stride+i] for i < k, a multiple of 8, and j < 8.")
	k, stride, p, b := g.arg("k"), g.arg("stride"), g.arg("p"), g.arg("b")
	g.SHLQ(operand.U8(2), stride)
	three, four, five := g.GP64(), g.GP64(), g.GP64()
	g.LEAQ(operand.Mem{Base: stride, Index: stride, Scale: 2}, three)
	g.LEAQ(operand.Mem{Base: b, Index: stride, Scale: 4}, four)
	g.LEAQ(operand.Mem{Base: four, Index: stride, Scale: 1}, five)
	row := []operand.Mem{{Base: b}, {Base: b, Index: stride, Scale: 1}, {Base: b, Index: stride, Scale: 2},
		{Base: b, Index: three, Scale: 1},
		{Base: four}, {Base: four, Index: stride, Scale: 1}, {Base: four, Index: stride, Scale: 2},
		{Base: five, Index: stride, Scale: 2}}
	g.Label("loop")
	// Register q of half h has columns 4h to 4h+3 of rows q and q+4.
	var in [2][4]reg.VecVirtual
	for h := range 2 {
		for q := range 4 {
			low, high := row[q], row[q+4]
			low.Disp, high.Disp = 16*h, 16*h
			v := g.YMM()
			g.VMOVUPS(low, v.AsX())
			g.VINSERTF128(operand.U8(1), high, v, v)
			in[h][q] = v
		}
	}
	for h := range 2 {
		v := in[h]
		low, high, low2, high2 := g.YMM(), g.YMM(), g.YMM(), g.YMM()
		g.VUNPCKLPS(v[1], v[0], low)
		g.VUNPCKHPS(v[1], v[0], high)
		g.VUNPCKLPS(v[3], v[2], low2)
		g.VUNPCKHPS(v[3], v[2], high2)
		for i, pair := range [][2]reg.VecVirtual{{low, low2}, {low, low2}, {high, high2}, {high, high2}} {
			out := g.YMM()
			if i%2 == 0 {
				g.VUNPCKLPD(pair[1], pair[0], out)
			} else {
				g.VUNPCKHPD(pair[1], pair[0], out)
			}
			g.VMOVUPS(out, operand.Mem{Base: p, Disp: (4*h + i) * 4 * columns})
		}
	}
	for _, at := range []reg.GPVirtual{b, four, five} {
		g.ADDQ(imm(32), at)
	}
	g.ADDQ(imm(8*4*columns), p)
	g.SUBQ(imm(8), k)
	g.JNE(operand.LabelRef("loop"))
	g.end()
}

// packRows writes the kernel that packs the rows of a transposed A: for several calls of the
// register kernel at once, so that a cache line is read once.
func (g *gen) packRows(rows int) {
	g.function("packRows", []string{"k", "stride", "parts", "next"}, []string{"p", "a"}, nil, false,
		"p[s*next+q*rows+i] = a[q*stride+s*rows+i] for q < k, s < parts, i < rows.")
	k, stride, parts, next, p, a := g.arg("k"), g.arg("stride"), g.arg("parts"), g.arg("next"), g.arg("p"), g.arg("a")
	g.SHLQ(operand.U8(2), stride)
	g.SHLQ(operand.U8(2), next)
	g.Label("row")
	s, from, to := g.GP64(), g.GP64(), g.GP64()
	g.MOVQ(parts, s)
	g.MOVQ(a, from)
	g.MOVQ(p, to)
	g.Label("part")
	if rows == 12 {
		y, x := g.YMM(), g.XMM()
		g.VMOVUPS(operand.Mem{Base: from}, y)
		g.VMOVUPS(operand.Mem{Base: from, Disp: 32}, x)
		g.VMOVUPS(y, operand.Mem{Base: to})
		g.VMOVUPS(x, operand.Mem{Base: to, Disp: 32})
	} else {
		x, d := g.XMM(), g.GP64()
		g.VMOVUPS(operand.Mem{Base: from}, x)
		g.MOVQ(operand.Mem{Base: from, Disp: 16}, d)
		g.VMOVUPS(x, operand.Mem{Base: to})
		g.MOVQ(d, operand.Mem{Base: to, Disp: 16})
	}
	g.ADDQ(imm(4*rows), from)
	g.ADDQ(next, to)
	g.DECQ(s)
	g.JNZ(operand.LabelRef("part"))
	g.ADDQ(stride, a)
	g.ADDQ(imm(4*rows), p)
	g.DECQ(k)
	g.JNZ(operand.LabelRef("row"))
	g.end()
}
