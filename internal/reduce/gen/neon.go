package main

import (
	"bytes"
	"fmt"
)

// neon writes kernels for arm64. Go's assembler has names for few of its vector instructions, so
// most are written as words, and each has beside it what it is in Arm's own syntax. The test
// compares the words with those of another assembler, which testdata/neon.txt has.
type neon struct {
	asm, stubs bytes.Buffer
	words      map[string]uint32 // each instruction that was written as a word, in Arm's syntax
	labels     int
}

// insn is one line of assembly.
type insn string

// add writes lines as they are.
func (g *neon) add(lines ...insn) {
	for _, l := range lines {
		fmt.Fprintf(&g.asm, "\t%s\n", l)
	}
}

// line writes an instruction or a label, in the manner of fmt.Printf.
func (g *neon) line(format string, args ...any) { g.add(insn(fmt.Sprintf(format, args...))) }

// label writes a label.
func (g *neon) label(name string) { fmt.Fprintf(&g.asm, "\n%s:\n", name) }

// newLabel is a label that the function has not had.
func (g *neon) newLabel(name string) string {
	g.labels++
	return fmt.Sprintf("%s%d", name, g.labels)
}

// word is the instruction text, whose encoding is w.
func (g *neon) word(w uint32, format string, args ...any) insn {
	text := fmt.Sprintf(format, args...)
	if before, ok := g.words[text]; ok && before != w {
		panic(fmt.Sprintf("%s is both %#08x and %#08x", text, before, w))
	}
	g.words[text] = w
	return insn(fmt.Sprintf("WORD $0x%08x // %s", w, text))
}

// lanes is how a register is divided: the bits of an element.
type lanes uint32

// shape is the arrangement's name of the whole register, or of its lower half.
func (l lanes) shape(low bool) string {
	bits := 128
	if low {
		bits = 64
	}
	return fmt.Sprintf("%d%s", bits/int(l), map[lanes]string{8: "b", 16: "h", 32: "s", 64: "d"}[l])
}

// size is the field size of an encoding.
func (l lanes) size() uint32 { return map[lanes]uint32{8: 0, 16: 1, 32: 2, 64: 3}[l] << 22 }

// three is an instruction of three registers, all of which have the same lanes.
func (g *neon) three(name string, base uint32, shape string, d, n, m int) insn {
	return g.word(base|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s, v%d.%s", name, d, shape, n, shape, m,
		shape)
}

// The opcodes of instructions on integers, with the bit that makes them unsigned.
var integers = map[string]uint32{
	"add": 0x4e208400, "mul": 0x4e209c00, "smin": 0x4e206c00, "smax": 0x4e206400, "umin": 0x6e206c00, "umax": 0x6e206400,
	"cmgt": 0x4e203400, "cmhi": 0x6e203400,
}

func (g *neon) integer(name string, l lanes, d, n, m int) insn {
	return g.three(name, integers[name]|l.size(), l.shape(false), d, n, m)
}

// The opcodes of instructions on float32 and on half. That of float64 has one bit more than that of float32.
var floats = map[string][2]uint32{
	"fadd": {0x4e20d400, 0x4e401400}, "fmul": {0x6e20dc00, 0x6e401c00}, "fdiv": {0x6e20fc00, 0x6e403c00},
	"fmin": {0x4ea0f400, 0x4ec03400}, "fmax": {0x4e20f400, 0x4e403400},
}

func (g *neon) float(name string, l lanes, d, n, m int) insn {
	w := floats[name][0]
	switch l {
	case 16:
		w = floats[name][1]
	case 64:
		w |= 1 << 22
	}
	return g.three(name, w, l.shape(false), d, n, m)
}

// unless sets the bits of d to those of n where those of m are 0.
func (g *neon) unless(d, n, m int) insn { return g.three("bif", 0x6ee01c00, "16b", d, n, m) }

// upper sets d to the upper halves of the words of n and of m.
func (g *neon) upper(d, n, m int) insn { return g.three("uzp2", 0x4e405800, "8h", d, n, m) }

// two is an instruction that widens half of a register, or narrows one into half of another: the
// lower half, or the upper.
func (g *neon) two(name string, base uint32, wide, narrow lanes, d, n int, up, widens bool, rest string) insn {
	if up {
		base |= 1 << 30
		name += "2"
	}
	to, from := narrow.shape(!up), wide.shape(false)
	if widens {
		to, from = from, to
	}
	return g.word(base|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s%s", name, d, to, n, from, rest)
}

// widenInteger makes integers of twice the bits, which l are, of half of a register.
func (g *neon) widenInteger(l lanes, signed bool, d, n int, up bool) insn {
	name, w := "sxtl", uint32(0x0f00a400)
	if !signed {
		name, w = "uxtl", 0x2f00a400
	}
	return g.two(name, w|uint32(l/2)<<16, l, l/2, d, n, up, true, "")
}

// toFloat makes floats of signed integers, and toInteger those of floats, rounded towards zero.
func (g *neon) toFloat(l lanes, d, n int) insn   { return g.convert("scvtf", 0x4e21d800, l, d, n) }
func (g *neon) toInteger(l lanes, d, n int) insn { return g.convert("fcvtzs", 0x4ea1b800, l, d, n) }

func (g *neon) convert(name string, w uint32, l lanes, d, n int) insn {
	if l == 64 {
		w |= 1 << 22
	}
	return g.word(w|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.%s", name, d, l.shape(false), n, l.shape(false))
}

// lower sets d to the lower halves of the elements of n and of m, which have twice the bits.
func (g *neon) lower(l lanes, d, n, m int) insn {
	return g.three("uzp1", 0x4e001800|l.size(), l.shape(false), d, n, m)
}

// widenHalf makes float32 of half elements.
func (g *neon) widenHalf(d, n int, up bool) insn {
	return g.two("fcvtl", 0x0e217800, 32, 16, d, n, up, true, "")
}

// narrowHalf rounds float32 to half.
func (g *neon) narrowHalf(d, n int, up bool) insn {
	return g.two("fcvtn", 0x0e216800, 32, 16, d, n, up, false, "")
}

// widenBF16 makes float32 of bfloats: it moves them to the upper half of each word.
func (g *neon) widenBF16(d, n int, up bool) insn {
	return g.two("shll", 0x2e613800, 32, 16, d, n, up, true, ", #16")
}

// narrowBF16 rounds float32 to bfloat, which FEAT_BF16 has.
func (g *neon) narrowBF16(d, n int, up bool) insn {
	return g.two("bfcvtn", 0x0ea16800, 32, 16, d, n, up, false, "")
}

// addUpper sets half of d to the upper halves of n+m.
func (g *neon) addUpper(d, n, m int, up bool) insn {
	name, w, shape := "addhn", uint32(0x0e604000), "4h"
	if up {
		name, w, shape = "addhn2", 0x4e604000, "8h"
	}
	return g.word(w|uint32(m)<<16|uint32(n)<<5|uint32(d), "%s v%d.%s, v%d.4s, v%d.4s", name, d, shape, n, m)
}

// shiftLeft sets the words of d to those of n, moved left by bits.
func (g *neon) shiftLeft(d, n, bits int) insn {
	return g.word(0x4f005400|uint32(32+bits)<<16|uint32(n)<<5|uint32(d), "shl v%d.4s, v%d.4s, #%d", d, n, bits)
}

// addShifted adds to the words of d those of n, moved right by bits.
func (g *neon) addShifted(d, n, bits int) insn {
	return g.word(0x6f001400|uint32(64-bits)<<16|uint32(n)<<5|uint32(d), "usra v%d.4s, v%d.4s, #%d", d, n, bits)
}

// belowHalf sets the words of d to 0x7fff.
func (g *neon) belowHalf(d int) insn {
	return g.word(0x4f03c7e0|uint32(d), "movi v%d.4s, #127, msl #8", d)
}

// spread sets all elements of d, a float32 or a float64, to the first of n.
func (g *neon) spread(l lanes, d, n int) insn {
	w, name := uint32(0x4e040400), "s"
	if l == 64 {
		w, name = 0x4e080400, "d"
	}
	return g.word(w|uint32(n)<<5|uint32(d), "dup v%d.%s, v%d.%s[0]", d, l.shape(false), n, name)
}

// loadSpread sets all float32 of d to that at the address in register p, to which it adds register by.
func (g *neon) loadSpread(d, p, by int) insn {
	return g.word(0x4dc0c800|uint32(by)<<16|uint32(p)<<5|uint32(d), "ld1r {v%d.4s}, [x%d], x%d", d, p, by)
}

// mode is how a load or a store comes by its address.
type mode int

const (
	offset   mode = iota // base + offset
	advance              // base, to which the offset is added then
	bypasses             // base + offset, with the hint that the caches need not hold it
)

// pair loads or stores two whole registers.
func (g *neon) pair(store bool, how mode, x, y, base, off int) insn {
	w := map[mode]uint32{offset: 0xad400000, advance: 0xacc00000, bypasses: 0xac400000}[how]
	name := map[bool]string{false: "ldp", true: "stp"}[store]
	if how == bypasses {
		name = map[bool]string{false: "ldnp", true: "stnp"}[store]
	}
	if store {
		w &^= 1 << 22
	}
	w |= uint32(off/16)&0x7f<<15 | uint32(y)<<10 | uint32(base)<<5 | uint32(x)
	return g.word(w, "%s q%d, q%d, %s", name, x, y, address(how, base, off))
}

// one loads or stores the first bytes of a register: 16, 8, 4, 2 or 1. A load makes the others 0.
// The offset of mode offset is 0.
func (g *neon) one(store bool, how mode, bytes, x, base int) insn {
	kind := map[int]struct {
		name string
		w    uint32
	}{16: {"q", 0x3cc00000}, 8: {"d", 0xfc400000}, 4: {"s", 0xbc400000}, 2: {"h", 0x7c400000}, 1: {"b", 0x3c400000}}[bytes]
	w, off, name := kind.w|1<<24, 0, "ldr"
	if how == advance {
		w, off = kind.w|0x400|uint32(bytes)<<12, bytes
	}
	if store {
		w &^= 1 << 22
		name = "str"
	}
	return g.word(w|uint32(base)<<5|uint32(x), "%s %s%d, %s", name, kind.name, x, address(how, base, off))
}

// address is an address in Arm's syntax.
func address(how mode, base, off int) string {
	switch {
	case how == advance:
		return fmt.Sprintf("[x%d], #%d", base, off)
	case off != 0:
		return fmt.Sprintf("[x%d, #%d]", base, off)
	}
	return fmt.Sprintf("[x%d]", base)
}
