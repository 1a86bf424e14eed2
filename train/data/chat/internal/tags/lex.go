// Package tags cuts a template in Jinja into text and the tokens of its tags.
package tags

import (
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccl/goccl/train/data/chat/internal/python"
)

// Token is a piece of a template: of its text, or of what stands in its tags.
type Token struct {
	Kind kind
	Text string
	Line int
}

type kind uint8

const (
	End      kind = iota // of the template
	Plain                // text, to be written as it is
	open                 // {{ or {%
	Shut                 // }} or %}
	Name                 // or a keyword
	Str                  // a literal, without quotes
	Number               // an integer or a float
	Operator             // signs
)

// signs are the operators, longer ones first.
var signs = []string{"**", "//", "==", "!=", "<=", ">=",
	"(", ")", "[", "]", "{", "}", "+", "-", "*", "/", "%", "~", "<", ">", "=", ".", ",", ":", "|"}

// Value is that of a Number.
func (t Token) Value() any {
	s := strings.ReplaceAll(t.Text, "_", "")
	if i, err := strconv.ParseInt(s, 10, 64); err == nil {
		return i
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(python.Failed(t.Line, "%q is no number", t.Text))
	}
	return f
}

// Lex cuts a template into tokens. It leaves out white space as transformers has Jinja do it:
// trim_blocks, the line break after a {% %} or a comment; lstrip_blocks, blanks before one at the
// beginning of a line; and the template's last line break.
func Lex(src string) (list []Token) {
	src = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(src)
	src = strings.TrimSuffix(src, "\n")
	line, lineBegins := 1, true
	trim := false // the tag before ended with a minus
	for src != "" {
		at := nextTag(src)
		text := src[:at]
		src = src[at:]
		write := text
		if trim {
			write = strings.TrimLeftFunc(write, unicode.IsSpace)
		}
		if src != "" {
			rest := src[2:]
			switch begin := strings.LastIndexByte(text, '\n') + 1; {
			case strings.HasPrefix(rest, "-"):
				write = strings.TrimRightFunc(write, unicode.IsSpace)
			case src[1] != '{' && !strings.HasPrefix(rest, "+") && (begin > 0 || lineBegins) &&
				strings.TrimSpace(text[begin:]) == "":
				write = write[:max(0, len(write)-(len(text)-begin))]
			}
		}
		if write != "" {
			list = append(list, Token{Plain, write, line})
		}
		line += strings.Count(text, "\n")
		if src == "" {
			break
		}
		tag := src[:2]
		var n int
		if tag == "{#" {
			n = strings.Index(src, "#}")
			if n < 0 {
				panic(python.Failed(line, "a comment that does not end"))
			}
		} else {
			list = append(list, Token{open, tag, line})
			n = 2
			if n < len(src) && (src[n] == '-' || src[n] == '+') {
				n++
			}
			var in []Token
			in, n = lexTag(src, n, line, map[string]string{"{{": "}}", "{%": "%}"}[tag])
			list = append(append(list, in...), Token{Shut, "", line})
		}
		trim = src[n-1] == '-'
		plus := src[n-1] == '+'
		line += strings.Count(src[:n], "\n")
		src = src[n+2:]
		if lineBegins = false; tag != "{{" && !plus && strings.HasPrefix(src, "\n") {
			src, lineBegins = src[1:], true
			line++
		}
	}
	return append(list, Token{End, "", line})
}

// nextTag is where the next tag begins.
func nextTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return len(s)
}

// numbers are how integers and floats are written.
var numbers = regexp.MustCompile(`^[0-9][0-9_]*(\.[0-9][0-9_]*)?([eE][-+]?[0-9]+)?`)

// lexTag lexes what a tag has from byte i of s on. It ends where its end is, outside of brackets.
func lexTag(s string, i, line int, ends string) (list []Token, at int) {
	depth := 0
	for i < len(s) {
		rest := s[i:]
		signed := len(rest) > 2 && (rest[0] == '-' || rest[0] == '+') && rest[1:3] == ends
		switch c := rest[0]; {
		case depth == 0 && signed:
			return list, i + 1
		case depth == 0 && strings.HasPrefix(rest, ends):
			return list, i
		case c == ' ' || c == '\t' || c == '\n':
			if c == '\n' {
				line++
			}
			i++
		case c == '"' || c == '\'':
			text, n := literal(rest, line)
			list = append(list, Token{Str, text, line})
			i += n
		case '0' <= c && c <= '9':
			n := len(numbers.FindString(rest))
			list = append(list, Token{Number, rest[:n], line})
			i += n
		case c == '_' || unicode.IsLetter(firstRune(rest)):
			n := strings.IndexFunc(rest, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
			if n < 0 {
				n = len(rest)
			}
			list = append(list, Token{Name, rest[:n], line})
			i += n
		default:
			sign := ""
			for _, x := range signs {
				if sign == "" && strings.HasPrefix(rest, x) {
					sign = x
				}
			}
			switch sign {
			case "":
				panic(python.Failed(line, "a %q that is no operator", firstRune(rest)))
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			}
			list = append(list, Token{Operator, sign, line})
			i += len(sign)
		}
	}
	panic(python.Failed(line, "a tag that does not end with %s", ends))
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

var escapes = map[byte]string{'n': "\n", 't': "\t", 'r': "\r", '\\': "\\", '\'': "'", '"': "\"", '\n': "",
	'a': "\a", 'b': "\b", 'f': "\f", 'v': "\v", '0': "\x00"}

// literal is the string that begins s, and how long it is there.
func literal(s string, line int) (text string, n int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == s[0]:
			return b.String(), i + 1
		case c != '\\' || i+1 == len(s):
			b.WriteByte(c)
		default:
			i++
			if e, ok := escapes[s[i]]; ok {
				b.WriteString(e)
				continue
			}
			digits := map[byte]int{'x': 2, 'u': 4, 'U': 8}[s[i]]
			r, ok := hex(s[i+1:], digits)
			if !ok {
				b.WriteByte('\\')
				b.WriteByte(s[i])
				continue
			}
			b.WriteRune(r)
			i += digits
		}
	}
	panic(python.Failed(line, "a string that does not end"))
}

// hex reads a character by so many digits.
func hex(s string, digits int) (r rune, ok bool) {
	if digits == 0 || len(s) < digits {
		return 0, false
	}
	for _, c := range s[:digits] {
		d := strings.IndexRune("0123456789abcdef", unicode.ToLower(c))
		if d < 0 || r > unicode.MaxRune {
			return 0, false
		}
		r = r<<4 | rune(d)
	}
	return r, true
}
