package chars

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Complete returns how many bytes of b do not wait for what follows: all but the beginning of a
// character at the end.
func Complete(b []byte) int {
	for n := 1; n <= min(3, len(b)); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}

// Lossy returns b as text, with a U+FFFD in the place of each part that is no character but may be
// the beginning of one, as long as it can be: what the Unicode Standard recommends (3.9, U+FFFD
// substitution of maximal subparts), and Rust does.
func Lossy(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out strings.Builder
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		out.WriteRune(r)
		if r == utf8.RuneError && n == 1 {
			for n < len(b) && n < 4 && !utf8.FullRune(b[:n]) && !utf8.RuneStart(b[n]) && !utf8.FullRune(b[:n+1]) {
				n++
			}
		}
		b = b[n:]
	}
	return out.String()
}

// Letters are GPT-2's for bytes: itself where a byte is a letter or a sign, and else one from
// U+0100 on.
var Letters, bytesOf = func() (letters [256]rune, bytesOf map[rune]byte) {
	bytesOf = map[rune]byte{}
	next := rune(256)
	for b := range rune(256) {
		if '!' <= b && b <= '~' || '¡' <= b && b <= '¬' || '®' <= b {
			letters[b] = b
		} else {
			letters[b] = next
			next++
		}
		bytesOf[letters[b]] = byte(b)
	}
	return letters, bytesOf
}()

// AppendBytes appends the bytes that a token's letters stand for, or the token as it is if it has
// others.
func AppendBytes(b []byte, token string) []byte {
	from := len(b)
	for _, r := range token {
		x, ok := bytesOf[r]
		if !ok {
			return append(b[:from], token...)
		}
		b = append(b, x)
	}
	return b
}

// IsLetters reports whether a token has letters for bytes alone.
func IsLetters(token string) bool {
	for _, r := range token {
		if _, ok := bytesOf[r]; !ok {
			return false
		}
	}
	return true
}

// ByteOf returns the byte that a token such as <0x0A> stands for.
func ByteOf(token string) (byte, bool) {
	if len(token) != 6 || token[:3] != "<0x" || token[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(token[3:5], 16, 8)
	return byte(b), err == nil
}

// mostGrown bounds how many times as long the Replaces of a file make a text, all together: each that
// doubles it doubles what the others have made.
const mostGrown = 1 << 8

// Grow accounts for a replacement of old by content in what others have made so many times as long.
func Grow(grown *int, old, content string) error {
	n := len(old)
	if *grown = max(*grown, 1) * max((len(content)+n-1)/n, 1); *grown > mostGrown {
		return fmt.Errorf("content of %d bytes for %d, with those before it, makes a text %d times as long: %d is the most",
			len(content), n, *grown, mostGrown)
	}
	return nil
}
