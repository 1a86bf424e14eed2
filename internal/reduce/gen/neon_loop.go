package main

import (
	"fmt"
	"math/bits"
)

// neonKernel is one assembly function.
type neonKernel struct {
	name   string
	does   string // what dst[i] becomes, for its comment
	form   form
	size   int // bytes of an element
	op     neonOp
	round  bool // the op needs the constant that bfloats are rounded by
	stream bool // stores that need not go into the caches
	double bool // what it divides by is a float64
}

// The registers of a kernel.
const (
	regDst, regA, regB, regN, regOther = 0, 1, 2, 3, 4

	vecA, vecB, vecT = 0, 4, 16 // the first of four, of four, and of sixteen
)

const (
	register = 16           // bytes
	block    = 4 * register // bytes of an iteration of the main loop: a cache line
)

// kernelRegisters are where a kernel has its arguments.
var kernelRegisters = map[string]int{"dst": regDst, "other": regOther, "a": regA, "src": regA, "b": regB, "n": regN}

// size is how many bytes the parameter takes.
func (p parameter) size() int {
	if p.typ == "float32" {
		return 4
	}
	return 8
}

// begin writes the declaration of a function and the start of its assembly, which loads the
// arguments that have a register, and returns where its parameters lie.
func (g *neon) begin(name string, params []parameter, registers map[string]int, doc ...string) (at map[string]string) {
	at, off, list := map[string]string{}, 0, ""
	for _, p := range params {
		off = (off + p.size() - 1) &^ (p.size() - 1)
		at[p.name] = fmt.Sprintf("%s+%d(FP)", p.name, off)
		off += p.size()
		if list != "" {
			list += ", "
		}
		list += p.name + " " + p.typ
	}
	fmt.Fprintf(&g.stubs, "\n")
	for _, d := range doc {
		fmt.Fprintf(&g.stubs, "// %s\n", d)
	}
	fmt.Fprintf(&g.stubs, "//\n//go:noescape\nfunc %s(%s)\n", name, list)
	fmt.Fprintf(&g.asm, "\n// func %s(%s)\nTEXT ·%s(SB), NOSPLIT, $0-%d\n", name, list, name, off)
	g.labels = 0
	for _, p := range params {
		if r, is := registers[p.name]; is {
			g.line("MOVD %s, R%d", at[p.name], r)
		}
	}
	return at
}

// loop writes steps of most, which register r counts, and one for each bit of what is left. That
// has the lowest bits of r, from which a multiple of most has been taken.
func (g *neon) loop(r, most, least int, step func(n int)) {
	g.line("SUBS $%d, R%d, R%d", most, r, r)
	g.line("BLT rest")
	g.label("loop")
	step(most)
	g.line("SUBS $%d, R%d, R%d", most, r, r)
	g.line("BGE loop")
	g.label("rest")
	for n := most / 2; n >= least; n /= 2 {
		after := fmt.Sprintf("no%d", n)
		g.line("TBZ $%d, R%d, %s", bits.TrailingZeros(uint(n)), r, after)
		step(n)
		g.label(after)
	}
	g.line("RET")
}

// emit writes k: a loop of blocks.
func (g *neon) emit(k neonKernel) {
	divisor := "float32"
	if k.double {
		divisor = "float64"
	}
	doc := []string{fmt.Sprintf("%s computes: for i := range n { dst[i] = %s }", k.name, k.does)}
	switch {
	case k.form == both:
		doc = append(doc, "and other[i] likewise, with stores that need not go into the caches.")
	case k.stream:
		doc = append(doc, "with stores that need not go into the caches.")
	}
	at := g.begin(k.name, k.form.params(divisor), kernelRegisters, doc...)
	if k.form == scale {
		g.broadcast(at["by"], divisor)
	}
	if k.round {
		g.add(g.belowHalf(regBelow))
	}
	if k.size > 1 {
		g.line("LSL $%d, R%d, R%d", bits.TrailingZeros(uint(k.size)), regN, regN)
	}
	g.loop(regN, block, k.size, func(bytes int) { g.step(k, bytes) })
}

// broadcast sets regBy to the parameter.
func (g *neon) broadcast(at, typ string) {
	if typ == "float64" {
		g.line("FMOVD %s, F%d", at, regBy)
		g.add(g.spread(64, regBy, regBy))
		return
	}
	g.line("FMOVS %s, F%d", at, regBy)
	g.add(g.spread(32, regBy, regBy))
}

// step writes the work on some bytes: a block, two registers, one, or less.
func (g *neon) step(k neonKernel, bytes int) {
	if k.form == move {
		g.load(vecA, regA, bytes, advance)
		g.store(vecA, regDst, bytes, k.stream)
		return
	}
	if k.form == scale {
		g.load(vecA, regDst, bytes, offset)
	} else {
		g.load(vecA, regA, bytes, advance)
		g.load(vecB, regB, bytes, advance)
	}
	g.compute(k, bytes)
	if k.form == both {
		g.store(vecA, regOther, bytes, k.stream)
	}
	g.store(vecA, regDst, bytes, k.stream)
}

// compute writes the operation on the registers that so many bytes take. Those of different
// registers take turns, so that a core that runs them in order need not wait for the one before.
func (g *neon) compute(k neonKernel, bytes int) {
	var turns [][]insn
	for i := range (bytes + register - 1) / register {
		turns = append(turns, k.op(g, vecA+i, vecA+i, vecB+i, vecT+4*i, bytes < register))
	}
	g.inTurns(turns)
}

// inTurns writes the first of each list, then the second of each, and so on. The lists have the same length.
func (g *neon) inTurns(lists [][]insn) {
	for i := range lists[0] {
		for _, l := range lists {
			g.add(l[i])
		}
	}
}

// load loads bytes into registers from v on.
func (g *neon) load(v, base, bytes int, how mode) {
	switch {
	case bytes == block && how == advance:
		g.add(g.pair(false, advance, v, v+1, base, block), g.pair(false, offset, v+2, v+3, base, -block/2))
	case bytes == block:
		g.add(g.pair(false, offset, v, v+1, base, 0), g.pair(false, offset, v+2, v+3, base, block/2))
	case bytes == block/2:
		off := 0
		if how == advance {
			off = block / 2
		}
		g.add(g.pair(false, how, v, v+1, base, off))
	default:
		g.add(g.one(false, how, bytes, v, base))
	}
}

// store stores bytes of registers from v on, and moves base behind them.
func (g *neon) store(v, base, bytes int, stream bool) {
	switch {
	case bytes == block && stream:
		g.add(g.pair(true, bypasses, v, v+1, base, 0), g.pair(true, bypasses, v+2, v+3, base, block/2))
		g.line("ADD $%d, R%d, R%d", block, base, base)
	case bytes == block:
		g.add(g.pair(true, advance, v, v+1, base, block), g.pair(true, offset, v+2, v+3, base, -block/2))
	case bytes == block/2:
		g.add(g.pair(true, advance, v, v+1, base, block/2))
	default:
		g.add(g.one(true, advance, bytes, v, base))
	}
}
