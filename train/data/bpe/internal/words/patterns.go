// Package words cuts a text: into words by the pattern of a tokenizer, and at added tokens.
package words

import (
	"strings"

	"github.com/goccl/goccl/train/data/bpe/internal/chars"
)

// Splitter returns the length of the first word of a text that is not empty.
type Splitter func(s string) int

// Patterns are the regular expressions by which a tokenizer.json cuts words, each with what finds
// the same words: Go's regexp has no (?!, and would be slower.
var Patterns = map[string]Splitter{
	gpt2Pattern: GPT2,
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`: GPT2,
	llamaPattern(`\p{N}{1,3}`): func(s string) int { return llama(s, 3) },
	llamaPattern(`\p{N}`):      func(s string) int { return llama(s, 1) },
}

const gpt2Pattern = `'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// llamaPattern is that of Llama 3 and of Qwen 2, which differ in the numbers.
func llamaPattern(number string) string {
	return `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|` + number +
		`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
}

// run is the end of the characters of a kind from i on, at most so many of them.
func run(s string, i int, of chars.Kind, most int) int {
	for ; most > 0; most-- {
		k, n := chars.At(s, i)
		if k != of {
			break
		}
		i += n
	}
	return i
}

// GPT2 is the Splitter of GPT-2's pattern.
func GPT2(s string) int {
	if n := contraction(s, false); n > 0 {
		return n
	}
	k, n := chars.At(s, 0)
	if s[0] == ' ' {
		if k2, n2 := chars.At(s, 1); k2 != chars.None && k2 != chars.Space {
			k, n = k2, n+n2
		}
	}
	if k == chars.Space {
		return blank(s)
	}
	return run(s, n, k, len(s))
}

// llama is Llama 3's pattern, with numbers of so many digits.
func llama(s string, digits int) int {
	if n := contraction(s, true); n > 0 {
		return n
	}
	k, n := chars.At(s, 0)
	switch k {
	case chars.Letter:
		return run(s, n, chars.Letter, len(s))
	case chars.Number:
		return run(s, 0, chars.Number, digits)
	}
	next, m := chars.At(s, n)
	if next == chars.Letter && s[0] != '\r' && s[0] != '\n' {
		return run(s, n+m, chars.Letter, len(s))
	}
	if s[0] == ' ' && next == chars.Other {
		k, n = chars.Other, n+m
	}
	if k == chars.Other {
		n = run(s, n, chars.Other, len(s))
		return n + len(s[n:]) - len(strings.TrimLeft(s[n:], "\r\n"))
	}
	if n = strings.LastIndexAny(s[:run(s, n, chars.Space, len(s))], "\r\n"); n >= 0 {
		return n + 1
	}
	return blank(s)
}

// blank is \s+(?!\S)|\s+: white chars.Space, without the last character of it if more than that
// stands before a word.
func blank(s string) int {
	last, end := 0, 0
	for {
		k, n := chars.At(s, end)
		switch {
		case k == chars.Space:
			last, end = end, end+n
		case k == chars.None || last == 0:
			return end
		default:
			return last
		}
	}
}

// contraction is the length of one such as 's at the beginning of s; fold: also of capitals.
func contraction(s string, fold bool) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	lower := func(c byte) byte {
		if fold && 'A' <= c && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}
	switch a := lower(s[1]); {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case fold && strings.HasPrefix(s[1:], "ſ"): // the long s, which folds to one
		return 1 + len("ſ")
	case len(s) > 2 && (a == 'l' && lower(s[2]) == 'l' || (a == 'v' || a == 'r') && lower(s[2]) == 'e'):
		return 3
	}
	return 0
}

// Next is the end of the first word of text, where cut begins one; with runs a run of them does.
func Next(text, cut string, runs bool) int {
	rest := strings.TrimPrefix(text, cut)
	if runs {
		rest = strings.TrimLeft(text, cut)
	}
	if n := strings.Index(rest, cut); n >= 0 {
		return len(text) - len(rest) + n
	}
	return len(text)
}
