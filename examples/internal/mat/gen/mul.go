package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// mul writes a register kernel of the matrix product: two registers of columns, all rows accumulated in registers.
func (g *gen) mul(name string, rows int) {
	g.function(name, []string{"k", "si", "sk", "ldc"}, []string{"a", "b", "c"}, nil, false,
		fmt.Sprintf("c[i*ldc+j] += the sum over p < k of a(i, p) * b[p*columns+j], where a(i, p) lies i*si+p*sk bytes behind a, for i < %d.", rows))
	k, si, sk, ldc, b, c := g.arg("k"), g.arg("si"), g.arg("sk"), g.arg("ldc"), g.arg("b"), g.arg("c")
	g.SHLQ(operand.U8(2), ldc)
	bases := []reg.GPVirtual{g.arg("a")}
	for len(bases) < (rows+2)/3 {
		next := g.GP64()
		g.LEAQ(operand.Mem{Base: bases[len(bases)-1], Index: si, Scale: 2}, next)
		g.ADDQ(si, next)
		bases = append(bases, next)
	}
	acc := g.accumulators(rows)
	g.Label("loop")
	b0, b1 := g.vec(), g.vec()
	g.VMOVUPS(operand.Mem{Base: b}, b0)
	g.VMOVUPS(operand.Mem{Base: b, Disp: g.vector}, b1)
	for i := range rows {
		at := operand.Mem{Base: bases[i/3]}
		if i%3 > 0 {
			at.Index, at.Scale = si, uint8(i%3)
		}
		x := g.vec()
		g.VBROADCASTSS(at, x)
		g.VFMADD231PS(b0, x, acc[2*i])
		g.VFMADD231PS(b1, x, acc[2*i+1])
	}
	for _, base := range bases {
		g.ADDQ(sk, base)
	}
	g.ADDQ(imm(2*g.vector), b)
	g.DECQ(k)
	g.JNZ(operand.LabelRef("loop"))
	for i := range rows {
		for j := range 2 {
			at := operand.Mem{Base: c, Disp: j * g.vector}
			g.VADDPS(at, acc[2*i+j], acc[2*i+j])
			g.VMOVUPS(acc[2*i+j], at)
		}
		g.ADDQ(ldc, c)
	}
	g.end()
}

// peak writes as many multiplications and additions, in registers alone.
func (g *gen) peak() {
	g.function("peak", []string{"k"}, nil, nil, false, "12 fused multiply-adds of registers, k times.")
	k := g.arg("k")
	acc := g.accumulators(6)
	x := g.vec()
	g.VXORPS(x, x, x)
	g.Label("loop")
	for _, a := range acc {
		g.VFMADD231PS(x, x, a)
	}
	g.DECQ(k)
	g.JNZ(operand.LabelRef("loop"))
	g.end()
}

func (g *gen) accumulators(rows int) (acc []reg.VecVirtual) {
	for range 2 * rows {
		v := g.vec()
		g.VXORPS(v, v, v)
		acc = append(acc, v)
	}
	return acc
}
