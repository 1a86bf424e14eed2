package main

// The registers of a code for blocks, beside the first of other kernels.
const (
	regBlocks = 2 // how many are left
	regInner  = 3 // how many groups of a block are left
	regAhead  = 4 // where its elements are read a second time, or those of its second half are

	vecGroup, vecHigh                  = 0, 4 // four registers of elements each
	vecTop, vecScale, vecInverse       = 16, 17, 18
	vecOK, vecFinite, vecNaN, vecZero  = 19, 20, 21, 22
	vecSignless, vecMost, vecTiny, inf = 24, 25, 26, 27
)

// blockRegisters are where a code for blocks has its arguments.
var blockRegisters = map[string]int{"dst": regDst, "src": regA, "blocks": regBlocks}

// neonBlocks writes codes for blocks.
type neonBlocks struct{ neon *neon }

// words32 sets all words of d to x.
func (b neonBlocks) words32(d int, x uint32) {
	g := b.neon
	g.line("MOVD $%#08x, R%d", x, regInner)
	g.line("VDUP R%d, V%d.S4", regInner, d)
}

// group is how many elements four registers hold.
const group = 16

// emitEncode writes the encoder of k.
func (b neonBlocks) emitEncode(k blockCode) {
	g := b.neon
	name, params, doc := k.signature("encode", "NEON")
	g.begin(name, params, blockRegisters, doc...)
	b.words32(vecSignless, signless&0xffffffff)
	b.words32(vecMost, uint32(k.most))
	b.words32(vecTiny, belowTiny&0xffffffff)
	b.words32(inf, infinite&0xffffffff)
	b.words32(vecNaN, aNaN&0xffffffff)
	g.label("block")
	g.add(b.bits("eor", vecTop, vecTop, vecTop))
	g.line("MOVD R%d, R%d", regA, regAhead)
	g.line("MOVD $%d, R%d", k.elements/group, regInner)
	g.label("top")
	g.load(vecGroup, regAhead, block, advance)
	for i := range 4 {
		g.add(b.bits("and", vecGroup+i, vecGroup+i, vecSignless))
	}
	for i := range 4 {
		g.add(g.integer("smax", 32, vecTop, vecTop, vecGroup+i))
	}
	g.line("SUBS $1, R%d, R%d", regInner, regInner)
	g.line("BNE top")
	g.add(b.across(vecTop, vecTop), g.spread(32, vecTop, vecTop))

	g.add(g.float("fdiv", 32, vecScale, vecTop, vecMost), g.float("fdiv", 32, vecInverse, vecMost, vecTop),
		g.integer("cmgt", 32, vecOK, vecTop, vecTiny), g.integer("cmgt", 32, vecFinite, inf, vecTop),
		b.bits("and", vecOK, vecOK, vecFinite), b.bits("and", vecScale, vecScale, vecOK),
		b.bits("bic", vecFinite, vecNaN, vecFinite), b.bits("orr", vecScale, vecScale, vecFinite),
		g.one(true, advance, scaleSize, vecScale, regDst))
	if k.halves == 2 {
		g.line("ADD $%d, R%d, R%d", 4*k.bytes(), regA, regAhead)
	}
	g.line("MOVD $%d, R%d", k.bytes()/group, regInner)
	g.label("group")
	// rounded makes bytes in the first register of the elements at base.
	rounded := func(v, base int) {
		g.load(v, base, block, advance)
		for i := range 4 {
			g.add(g.float("fmul", 32, v+i, v+i, vecInverse))
		}
		for i := range 4 {
			g.add(g.convert("fcvtns", 0x4e21a800, 32, v+i, v+i))
		}
		g.add(g.lower(16, v, v, v+1), g.lower(16, v+2, v+2, v+3), g.lower(8, v, v, v+2))
	}
	rounded(vecGroup, regA)
	if k.halves == 2 {
		rounded(vecHigh, regAhead)
		g.add(b.shiftBytes("sli", 0x6f005400, 8+4, vecGroup, vecHigh, 4))
	}
	g.add(b.bits("and", vecGroup, vecGroup, vecOK), g.one(true, advance, register, vecGroup, regDst))
	g.line("SUBS $1, R%d, R%d", regInner, regInner)
	g.line("BNE group")
	if k.halves == 2 {
		g.line("ADD $%d, R%d, R%d", 4*k.bytes(), regA, regA)
	}
	b.nextBlock()
}

// emitDecode writes the decoder of k that adds to dst, or sets it.
func (b neonBlocks) emitDecode(k blockCode, add bool) {
	g := b.neon
	name, params, doc := k.signature(verb(add), "NEON")
	where := g.begin(name, params, blockRegisters, doc...)
	g.broadcast(where["by"], "float32")
	g.add(b.bits("eor", vecZero, vecZero, vecZero))
	g.label("block")
	g.add(g.one(false, advance, scaleSize, vecScale, regA), g.spread(32, vecScale, vecScale),
		g.float("fmul", 32, vecScale, vecScale, regBy))
	if k.halves == 2 {
		g.line("ADD $%d, R%d, R%d", 4*k.bytes(), regDst, regAhead)
	}
	g.line("MOVD $%d, R%d", k.bytes()/group, regInner)
	g.label("group")
	// put adds the elements of the bytes in the register to what is at base.
	put := func(bytes, base int) {
		const x, y = 12, 28 // four registers each
		g.add(g.widenInteger(16, true, x, bytes, false), g.widenInteger(16, true, x+2, bytes, true),
			g.widenInteger(32, true, x+1, x, true), g.widenInteger(32, true, x, x, false),
			g.widenInteger(32, true, x+3, x+2, true), g.widenInteger(32, true, x+2, x+2, false))
		for i := range 4 {
			g.add(g.toFloat(32, x+i, x+i))
		}
		for i := range 4 {
			g.add(g.float("fmul", 32, x+i, x+i, vecScale))
		}
		if add {
			g.load(y, base, block, offset)
		}
		for i := range 4 {
			other := vecZero // by which no zero is negative
			if add {
				other = y + i
			}
			g.add(g.float("fadd", 32, x+i, other, x+i))
		}
		g.store(x, base, block, false)
	}
	g.add(g.one(false, advance, register, vecGroup, regA))
	if k.halves == 2 {
		g.add(b.shiftBytes("sshr", 0x4f000400, 16-4, vecGroup+1, vecGroup, 4),
			b.shiftBytes("shl", 0x4f005400, 8+4, vecGroup, vecGroup, 4),
			b.shiftBytes("sshr", 0x4f000400, 16-4, vecGroup, vecGroup, 4))
		put(vecGroup+1, regAhead)
	}
	put(vecGroup, regDst)
	g.line("SUBS $1, R%d, R%d", regInner, regInner)
	g.line("BNE group")
	if k.halves == 2 {
		g.line("MOVD R%d, R%d", regAhead, regDst)
	}
	b.nextBlock()
}

// nextBlock ends the loop over blocks.
func (b neonBlocks) nextBlock() {
	g := b.neon
	g.line("SUBS $1, R%d, R%d", regBlocks, regBlocks)
	g.line("BNE block")
	g.line("RET")
}

// bits is an instruction on all bits of registers.
func (b neonBlocks) bits(name string, d, n, m int) insn {
	g := b.neon
	w := map[string]uint32{"and": 0x4e201c00, "bic": 0x4e601c00, "orr": 0x4ea01c00, "eor": 0x6e201c00}[name]
	return g.three(name, w, "16b", d, n, m)
}

// across sets the first word of d to the largest of n, and the others to 0.
func (b neonBlocks) across(d, n int) insn {
	g := b.neon
	return g.word(0x4eb0a800|uint32(n)<<5|uint32(d), "smaxv s%d, v%d.4s", d, n)
}

// shiftBytes shifts each byte of n by so many bits, which the encoding has as immediate.
func (b neonBlocks) shiftBytes(name string, w uint32, immediate, d, n, bits int) insn {
	g := b.neon
	return g.word(w|uint32(immediate)<<16|uint32(n)<<5|uint32(d), "%s v%d.16b, v%d.16b, #%d", name, d, n, bits)
}
