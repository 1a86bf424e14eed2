package main

// neonOp is an operation on registers of elements as memory has them. It returns the instructions
// that make d of a and b, where d is a. t is the first of four registers for what is between; low
// says that only the lower half matters.
type neonOp func(g *neon, d, a, b, t int, low bool) []insn

// neonOps are the operations of a type, as arithmetic lists them.
type neonOps [len(arithmetic)]neonOp

// integerOp is one instruction.
func integerOp(name string, l lanes) neonOp {
	return func(g *neon, d, a, b, _ int, _ bool) []insn { return []insn{g.integer(name, l, d, a, b)} }
}

// word64s is the minimum or maximum of 64 bits, for which there is no instruction: a comparison chooses. d is a.
func word64s(compare string, least bool) neonOp {
	return func(g *neon, d, a, b, t int, _ bool) []insn {
		first, second := a, b
		if least {
			first, second = b, a
		}
		return []insn{g.integer(compare, 64, t, first, second), g.unless(d, b, t)}
	}
}

// floatOp is an operation on floats as they are.
//
// Minimum and maximum are those of IEEE 754-2019, but of two NaNs the instruction gives the first
// that is signaling, and not the first. So b is made quiet before, which fmin of itself does.
func floatOp(name string, l lanes) neonOp {
	return func(g *neon, d, a, b, t int, _ bool) (lines []insn) {
		if name == "fmin" || name == "fmax" {
			lines = append(lines, g.float(name, l, t, b, b))
			b = t
		}
		return append(lines, g.float(name, l, d, a, b))
	}
}

// format is a 16-bit float that is computed as float32.
type format struct {
	widen  func(g *neon, d, n int, up bool) insn
	narrow func(g *neon, d, n, t int, up bool) []insn // t is for what is between; n need not stay what it is
	quiets bool                                       // widen makes NaNs quiet
}

var neonHalf = format{
	widen:  (*neon).widenHalf,
	narrow: func(g *neon, d, n, _ int, up bool) []insn { return []insn{g.narrowHalf(d, n, up)} },
	quiets: true,
}

// regBelow is the vector register that has 0x7fff in each word, where bfloats are rounded.
const regBelow = 8

// neonBF16 rounds to nearest even by adding just less than half a unit in the last place and, if
// that place is odd, 1 more. A NaN stays one: where it comes from bfloats, or from no NaN at all,
// its lower half is 0, so nothing is carried over.
var neonBF16 = format{
	widen: (*neon).widenBF16,
	narrow: func(g *neon, d, n, t int, up bool) []insn {
		return []insn{g.shiftLeft(t, n, 15), g.addShifted(n, t, 31), g.addUpper(d, n, regBelow, up)}
	},
}

// neonFeatBF16 rounds by an instruction of FEAT_BF16.
var neonFeatBF16 = format{
	widen:  (*neon).widenBF16,
	narrow: func(g *neon, d, n, _ int, up bool) []insn { return []insn{g.narrowBF16(d, n, up)} },
}

// op is an operation of float32 between widen and narrow. Minimum and maximum of bfloats need no rounding.
func (f format) op(name string) neonOp {
	return func(g *neon, d, a, b, t int, low bool) (lines []insn) {
		chooses := name == "fmin" || name == "fmax"
		half := func(x, y int, up bool) {
			lines = append(lines, f.widen(g, x, a, up), f.widen(g, y, b, up))
			if chooses && !f.quiets {
				lines = append(lines, g.float(name, 32, y, y, y))
			}
			lines = append(lines, g.float(name, 32, x, x, y))
		}
		half(t, t+1, false)
		if !low {
			half(t+2, t+3, true)
		}
		if chooses && !f.quiets {
			last := t + 2
			if low {
				last = t
			}
			return append(lines, g.upper(d, t, last))
		}
		lines = append(lines, f.narrow(g, d, t, t+1, false)...)
		if !low {
			lines = append(lines, f.narrow(g, d, t+2, t+3, true)...)
		}
		return lines
	}
}

// regBy is the vector register with what a kernel divides by, in each element.
const regBy = 9

// divide divides float32 between widen and narrow by what is in regBy.
func (f format) divide(g *neon, d, a, _, t int, low bool) (lines []insn) {
	lines = append(lines, f.widen(g, t, a, false), g.float("fdiv", 32, t, t, regBy))
	if !low {
		lines = append(lines, f.widen(g, t+2, a, true), g.float("fdiv", 32, t+2, t+2, regBy))
	}
	lines = append(lines, f.narrow(g, d, t, t+1, false)...)
	if !low {
		lines = append(lines, f.narrow(g, d, t+2, t+3, true)...)
	}
	return lines
}

// divideBy divides elements as they are by what is in regBy.
func divideBy(l lanes) neonOp {
	return func(g *neon, d, a, _, _ int, _ bool) []insn { return []insn{g.float("fdiv", l, d, a, regBy)} }
}

// divideIntegers divides integers of 8, 16 or 32 bits towards zero by what is in regBy: by way of
// float32, or of float64 for 32 bits. That is exact: a quotient that is less than an integer is
// less by more than a part in 2^(l+1), and those floats have 24 bits where l is at most 16, and 53
// where it is 32.
func divideIntegers(l lanes, signed bool) neonOp {
	wide := max(2*l, 32)
	return func(g *neon, d, a, _, t int, low bool) (lines []insn) {
		// Four registers hold all elements of 8 bits, two those of others; of the lower half, half as many.
		parts := []int{t, t + 2}
		lines = append(lines, g.widenInteger(2*l, signed, t, a, false))
		if !low {
			lines = append(lines, g.widenInteger(2*l, signed, t+2, a, true))
		} else {
			parts = parts[:1]
		}
		if l == 8 {
			for _, x := range parts {
				lines = append(lines, g.widenInteger(32, signed, x+1, x, true), g.widenInteger(32, signed, x, x, false))
			}
			if parts = []int{t, t + 1, t + 2, t + 3}; low {
				parts = parts[:2]
			}
		}
		for _, f := range []func(x int) insn{
			func(x int) insn { return g.toFloat(wide, x, x) },
			func(x int) insn { return g.float("fdiv", wide, x, x, regBy) },
			func(x int) insn { return g.toInteger(wide, x, x) },
		} {
			for _, x := range parts {
				lines = append(lines, f(x))
			}
		}
		for to := wide / 2; len(parts) > 0; to /= 2 {
			var pairs []int
			for i := 0; i < len(parts); i += 2 {
				x := parts[i]
				if to == l {
					x = d
				}
				lines = append(lines, g.lower(to, x, parts[i], parts[min(i+1, len(parts)-1)]))
				pairs = append(pairs, x)
			}
			if parts = pairs; to == l {
				break
			}
		}
		return lines
	}
}
