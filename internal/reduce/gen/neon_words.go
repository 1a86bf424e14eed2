package main

// emitProd64 writes the product of 64-bit integers. NEON has none, and to make it of products of 32
// bits takes more instructions than the core's own multiplier, which works on general registers.
func (g *neon) emitProd64(name string) {
	g.begin(name, binary.params(""), kernelRegisters, name+" computes: for i := range n { dst[i] = a[i] * b[i] }")
	const (
		most   = 8 // elements of an iteration
		x, y   = 4, 12
		inPair = 16 // bytes
	)
	// R18 is the system's, so the registers are R4 to R11 and R12 to R17 with R19 and R20.
	reg := func(first, i int) int {
		if r := first + i; r < 18 {
			return r
		} else {
			return r + 1
		}
	}
	step := func(elements int) {
		if elements == 1 {
			g.line("MOVD.P 8(R%d), R%d", regA, x)
			g.line("MOVD.P 8(R%d), R%d", regB, y)
		}
		for _, from := range []struct{ base, first int }{{regA, x}, {regB, y}} {
			for i := 0; i+1 < elements; i += 2 {
				g.line("LDP.P %d(R%d), (R%d, R%d)", inPair, from.base, reg(from.first, i), reg(from.first, i+1))
			}
		}
		for i := range elements {
			g.line("MUL R%d, R%d, R%d", reg(y, i), reg(x, i), reg(x, i))
		}
		if elements == 1 {
			g.line("MOVD.P R%d, 8(R%d)", x, regDst)
		}
		for i := 0; i+1 < elements; i += 2 {
			g.line("STP.P (R%d, R%d), %d(R%d)", reg(x, i), reg(x, i+1), inPair, regDst)
		}
	}
	g.loop(regN, most, 1, step)
}
