// Package chars knows characters as Hugging Face's tokenizers does: their kinds and normal forms,
// bytes as letters.
package chars

import (
	"unicode"
	"unicode/utf8"
)

// Kind is what the pattern of a tokenizer asks of a character.
type Kind uint8

const (
	None   Kind = iota // the end of the text
	Letter             // \p{L}
	Number             // \p{N}
	Space              // \s
	Other
)

var ascii = func() (k [utf8.RuneSelf]Kind) {
	for r := range k {
		k[r] = KindOf(rune(r))
	}
	return k
}()

// KindOf returns the kind of a character.
func KindOf(r rune) Kind {
	switch {
	case unicode.Is(unicode.L, r) || unicode.Is(laterLetters, r):
		return Letter
	case unicode.Is(unicode.N, r) || unicode.Is(laterNumbers, r):
		return Number
	case unicode.IsSpace(r):
		return Space
	}
	return Other
}

// laterLetters and laterNumbers are those of Unicode 16, which Hugging Face has, after Unicode 15,
// which Go 1.25 has.
var laterLetters = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1c89, 0x1c8a, 1}, {0xa7cb, 0xa7cd, 1}, {0xa7da, 0xa7dc, 1}},
	R32: []unicode.Range32{{0x105c0, 0x105f3, 1}, {0x10d4a, 0x10d65, 1}, {0x10d6f, 0x10d85, 1}, {0x10ec2, 0x10ec4, 1},
		{0x11380, 0x11389, 1}, {0x1138b, 0x1138b, 1}, {0x1138e, 0x1138e, 1}, {0x11390, 0x113b5, 1}, {0x113b7, 0x113b7, 1},
		{0x113d1, 0x113d1, 1}, {0x113d3, 0x113d3, 1}, {0x11bc0, 0x11be0, 1}, {0x13460, 0x143fa, 1}, {0x16100, 0x1611d, 1},
		{0x16d40, 0x16d6c, 1}, {0x18cff, 0x18cff, 1}, {0x1e5d0, 0x1e5ed, 1}, {0x1e5f0, 0x1e5f0, 1}, {0x2ebf0, 0x2ee5d, 1}},
}

var laterNumbers = &unicode.RangeTable{
	R32: []unicode.Range32{{0x10d40, 0x10d49, 1}, {0x116d0, 0x116e3, 1}, {0x11bf0, 0x11bf9, 1}, {0x16130, 0x16139, 1},
		{0x16d70, 0x16d79, 1}, {0x1ccf0, 0x1ccf9, 1}, {0x1e5f1, 0x1e5fa, 1}},
}

// At returns the kind and the length of the character at byte i.
func At(s string, i int) (Kind, int) {
	if i >= len(s) {
		return None, 0
	}
	if c := s[i]; c < utf8.RuneSelf {
		return ascii[c], 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	return KindOf(r), n
}

// OfWord reports whether r is \w as Unicode has it (UTS 18): letters and what counts as such,
// marks, digits, connectors, joiners.
func OfWord(r rune) bool {
	return KindOf(r) == Letter || r == 0x200c || r == 0x200d ||
		unicode.In(r, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Other_Alphabetic)
}
