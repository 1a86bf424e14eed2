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

// parameter is one of a function.
type parameter struct{ name, typ string }

// size is how many bytes the parameter takes.
func (p parameter) size() int {
	if p.typ == "float32" {
		return 4
	}
	return 8
}

// begin writes the declaration of a function and the start of its assembly, and returns where its parameters lie.
func (g *neon) begin(name string, params []parameter, doc ...string) (at map[string]string) {
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
	return at
}

// argument loads a parameter into a register.
func (g *neon) argument(at string, r int) { g.line("MOVD %s, R%d", at, r) }

// emit writes k: a loop of blocks, and a step for each bit of the bytes that are left.
func (g *neon) emit(k neonKernel) {
	const pointer = "unsafe.Pointer"
	params := []parameter{{"dst", pointer}}
	switch k.form {
	case binary:
		params = append(params, parameter{"a", pointer}, parameter{"b", pointer})
	case both:
		params = append(params, parameter{"other", pointer}, parameter{"a", pointer}, parameter{"b", pointer})
	case move:
		params = append(params, parameter{"src", pointer})
	}
	params = append(params, parameter{"n", "int"})
	divisor := parameter{"by", "float32"}
	if k.double {
		divisor.typ = "float64"
	}
	if k.form == scale {
		params = append(params, divisor)
	}
	doc := []string{fmt.Sprintf("%s computes: for i := range n { dst[i] = %s }", k.name, k.does)}
	switch {
	case k.form == both:
		doc = append(doc, "and other[i] likewise, with stores that need not go into the caches.")
	case k.stream:
		doc = append(doc, "with stores that need not go into the caches.")
	}
	at := g.begin(k.name, params, doc...)
	for _, a := range []struct {
		name string
		r    int
	}{{"dst", regDst}, {"other", regOther}, {"a", regA}, {"src", regA}, {"b", regB}, {"n", regN}} {
		if at[a.name] != "" {
			g.argument(at[a.name], a.r)
		}
	}
	if k.form == scale {
		g.broadcast(at["by"], divisor.typ)
	}
	if k.round {
		g.add(g.belowHalf(regBelow))
	}
	if k.size > 1 {
		g.line("LSL $%d, R%d, R%d", bits.TrailingZeros(uint(k.size)), regN, regN)
	}
	g.line("SUBS $%d, R%d, R%d", block, regN, regN)
	g.line("BLT rest")
	g.label("loop")
	g.step(k, block)
	g.line("SUBS $%d, R%d, R%d", block, regN, regN)
	g.line("BGE loop")
	g.label("rest")
	// What is left has the lowest bits of n, from which a multiple of a block has been taken.
	for bytes := block / 2; bytes >= k.size; bytes /= 2 {
		after := fmt.Sprintf("no%d", bytes)
		g.line("TBZ $%d, R%d, %s", bits.TrailingZeros(uint(bytes)), regN, after)
		g.step(k, bytes)
		g.label(after)
	}
	g.line("RET")
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

// compute writes the operation on the registers that so many bytes take. Those of different registers take turns, so that a core
// that runs them in order need not wait for the one before.
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
