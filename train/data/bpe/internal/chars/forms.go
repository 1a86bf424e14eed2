package chars

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Forms are Unicode's normal forms (UAX 15), by the names of a tokenizer.json. They are those of
// Unicode 9, which Hugging Face has, of texts of any length: x/text has a later version, and puts a
// joiner into 30 marks in a row.
var Forms = map[string]func(string) string{
	"NFC":  func(s string) string { return normal(norm.NFC, norm.NFD, true, s) },
	"NFD":  func(s string) string { return normal(norm.NFD, norm.NFD, false, s) },
	"NFKC": func(s string) string { return normal(norm.NFKC, norm.NFKD, true, s) },
	"NFKD": func(s string) string { return normal(norm.NFKD, norm.NFKD, false, s) },
}

// mark is a character and its canonical combining class.
type mark struct {
	r     rune
	class uint8
}

// normal is s in a form. parts decomposes a character as the form has it.
func normal(form, parts norm.Form, compose bool, s string) string {
	if form.IsNormalString(s) {
		return s
	}
	var all []mark
	for rest := s; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		if r == utf8.RuneError && n == 1 { // no UTF-8: left as it is, and nothing goes past it
			all = append(all, mark{r: invalid + rune(rest[0])})
		} else if unicode.Is(younger, r) {
			all = append(all, mark{r: r})
		} else {
			for _, p := range parts.String(rest[:n]) {
				all = append(all, mark{p, norm.NFD.PropertiesString(string(p)).CCC()})
			}
		}
		rest = rest[n:]
	}
	for i := 0; i < len(all); i++ {
		end := i
		for end < len(all) && all[end].class != 0 {
			end++
		}
		slices.SortStableFunc(all[i:end], func(a, b mark) int { return int(a.class) - int(b.class) })
		i = max(i, end-1)
	}
	if compose {
		all = composed(all)
	}
	var out strings.Builder
	for _, m := range all {
		if m.r >= invalid {
			out.WriteByte(byte(m.r - invalid))
		} else {
			out.WriteRune(m.r)
		}
	}
	return out.String()
}

// invalid is the first of 256 numbers, beyond all characters, for bytes that are of none.
const invalid = unicode.MaxRune + 1

// composed is the canonical composition of marks in order: each that nothing blocks from the last
// starter, in place.
func composed(all []mark) []mark {
	out := all[:0]
	starter := -1 // in out
	for _, m := range all {
		if starter >= 0 && (starter == len(out)-1 || m.class != 0 && out[len(out)-1].class < m.class) {
			if r, ok := pair(out[starter].r, m.r); ok {
				out[starter].r = r
				continue
			}
		}
		if m.class == 0 {
			starter = len(out)
		}
		out = append(out, m)
	}
	return out
}

// pair is what two characters compose to. x/text 0.23 looks pairs up by the low 16 bits of each, so
// that U+E0042 is a B to it: what comes out must decompose to the two.
func pair(a, b rune) (rune, bool) {
	if max(a, b) >= invalid || unicode.Is(younger, b) || unicode.Is(younger, a) {
		return 0, false
	}
	both := norm.NFC.String(string([]rune{a, b}))
	r, n := utf8.DecodeRuneInString(both)
	return r, n == len(both) && !unicode.Is(younger, r) && norm.NFD.String(both) == norm.NFD.String(string(a))+string(b)
}

// younger are the characters whose normal forms or classes came after Unicode 9.
var younger = &unicode.RangeTable{
	R16: []unicode.Range16{{0x07fd, 0x07fd, 1}, {0x0898, 0x089f, 1}, {0x08ca, 0x08d3, 1}, {0x09fe, 0x09fe, 1},
		{0x0c3c, 0x0c3c, 1}, {0x0d3b, 0x0d3c, 1}, {0x0eba, 0x0eba, 1}, {0x1715, 0x1715, 1}, {0x1abf, 0x1ace, 1},
		{0x1df6, 0x1dfa, 1}, {0x32ff, 0x32ff, 1}, {0xa7f2, 0xa7f4, 1}, {0xa82c, 0xa82c, 1}, {0xab69, 0xab69, 1}},
	R32: []unicode.Range32{{0x10781, 0x10785, 1}, {0x10787, 0x107b0, 1}, {0x107b2, 0x107ba, 1}, {0x10d24, 0x10d27, 1},
		{0x10eab, 0x10eac, 1}, {0x10efd, 0x10eff, 1}, {0x10f46, 0x10f50, 1}, {0x10f82, 0x10f85, 1}, {0x11070, 0x11070, 1},
		{0x1133b, 0x1133b, 1}, {0x1145e, 0x1145e, 1}, {0x11839, 0x1183a, 1}, {0x11938, 0x11938, 1}, {0x1193d, 0x1193e, 1},
		{0x11943, 0x11943, 1}, {0x119e0, 0x119e0, 1}, {0x11a34, 0x11a34, 1}, {0x11a47, 0x11a47, 1}, {0x11a99, 0x11a99, 1},
		{0x11d42, 0x11d42, 1}, {0x11d44, 0x11d45, 1}, {0x11d97, 0x11d97, 1}, {0x11f41, 0x11f42, 1}, {0x16ff0, 0x16ff1, 1},
		{0x1e030, 0x1e06d, 1}, {0x1e08f, 0x1e08f, 1}, {0x1e130, 0x1e136, 1}, {0x1e2ae, 0x1e2ae, 1}, {0x1e2ec, 0x1e2ef, 1},
		{0x1e4ec, 0x1e4ef, 1}, {0x1f16c, 0x1f16c, 1}, {0x1fbf0, 0x1fbf9, 1}},
}
