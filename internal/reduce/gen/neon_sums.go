package main

// neonSum is a kernel that adds any number of vectors of 16-bit floats. The sums stay in registers,
// as float32, until all are added.
type neonSum struct {
	name     string
	format   format
	round    bool
	weighted bool
}

// The registers of a sum, besides those of other kernels.
const (
	regSrcs, regCount, regAt, regLen = 1, 2, 3, 4
	regFrom, regList, regLeft        = 5, 6, 7
	regWeights, regStride, regEnds   = 8, 9, 10
	regWeight                        = 11

	vecLoaded, vecSums, vecBy = 0, 16, regBy
)

// sumRegisters are where a sum has its arguments.
var sumRegisters = map[string]int{"dst": regDst, "srcs": regSrcs, "count": regCount, "at": regAt, "n": regLen,
	"weights": regWeights, "stride": regStride, "ends": regEnds}

// emitSum writes k: a loop of blocks, each of which has a loop over the vectors in it.
func (g *neon) emitSum(k neonSum) {
	params, doc := sumSignature(k.name, k.weighted)
	if k.weighted {
		doc = append(doc, "mul is no NaN.")
	}
	where := g.begin(k.name, params, sumRegisters, doc...)
	if k.round {
		g.add(g.belowHalf(regBelow))
	}
	g.line("LSL $1, R%d, R%d", regLen, regLen)
	g.loop(regLen, block, 2, func(bytes int) { g.sumStep(k, where, bytes) })
}

// sumStep writes the sum of some bytes of each vector.
func (g *neon) sumStep(k neonSum, where map[string]string, bytes int) {
	registers, low := (bytes+register-1)/register, bytes < register
	halves := 2 // of each register
	if low {
		halves = 1
	}
	wide := registers * halves
	// vector loads the bytes of the vector that regList points to, and makes float32 of them from register to on.
	vector := func(to int) {
		g.line("MOVD.P 8(R%d), R%d", regList, regFrom)
		g.line("ADD R%d, R%d, R%d", regAt, regFrom, regFrom)
		g.load(vecLoaded, regFrom, bytes, offset)
		for i := range wide {
			g.add(k.format.widen(g, to+i, vecLoaded+i/halves, i%halves == 1))
		}
		if k.weighted {
			g.add(g.loadSpread(vecBy, regWeight, regStride))
			for i := range wide {
				g.add(g.float("fmul", 32, to+i, to+i, vecBy))
			}
		}
	}
	const terms = vecSums + 8 // behind the sums
	next, added := g.newLabel("next"), g.newLabel("added")
	g.line("MOVD R%d, R%d", regSrcs, regList)
	if k.weighted {
		g.line("MOVD R%d, R%d", regWeights, regWeight)
	}
	vector(vecSums)
	g.line("SUBS $1, R%d, R%d", regCount, regLeft)
	g.line("BEQ %s", added)
	g.label(next)
	vector(terms)
	for i := range wide {
		g.add(g.float("fadd", 32, vecSums+i, vecSums+i, terms+i))
	}
	g.line("SUBS $1, R%d, R%d", regLeft, regLeft)
	g.line("BNE %s", next)
	g.label(added)
	if k.weighted {
		plain := g.newLabel("plain")
		g.line("CBZ R%d, %s", regEnds, plain)
		for _, end := range []struct{ arg, op string }{{"mul", "fmul"}, {"div", "fdiv"}} {
			g.broadcast(where[end.arg], "float32")
			for i := range wide {
				g.add(g.float(end.op, 32, vecSums+i, vecSums+i, vecBy))
			}
		}
		g.label(plain)
	}
	var turns [][]insn
	for i := range registers {
		lines := k.format.narrow(g, vecLoaded+i, vecSums+halves*i, terms+2*i, false)
		if !low {
			lines = append(lines, k.format.narrow(g, vecLoaded+i, vecSums+halves*i+1, terms+2*i+1, true)...)
		}
		turns = append(turns, lines)
	}
	g.line("ADD R%d, R%d, R%d", regAt, regDst, regFrom)
	g.inTurns(turns)
	g.store(vecLoaded, regFrom, bytes, false)
	g.line("ADD $%d, R%d, R%d", bytes, regAt, regAt)
}
