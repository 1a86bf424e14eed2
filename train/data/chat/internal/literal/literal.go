// Package literal writes strings and floats as Python and JSON do.
package literal

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Float returns a float as Python's repr has it, or json.dumps.
func Float(v float64, repr bool) string {
	switch {
	case math.IsInf(v, 0) || math.IsNaN(v):
		s := map[bool]string{true: "inf", false: "Infinity"}[repr]
		if math.IsNaN(v) {
			return map[bool]string{true: "nan", false: "NaN"}[repr]
		} else if v < 0 {
			return "-" + s
		}
		return s
	case v == math.Trunc(v) && math.Abs(v) < 1e16:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case math.Abs(v) >= 1e-4 && math.Abs(v) < 1e16:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'e', -1, 64)
}

// Python returns a string as Python's repr has it.
func Python(s string) string {
	q := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = `"`
	}
	var b strings.Builder
	b.WriteString(q)
	for _, r := range s {
		switch {
		case string(r) == q || r == '\\':
			b.WriteString(`\` + string(r))
		case r == '\n' || r == '\t' || r == '\r':
			b.WriteString(escapes[r])
		case !strconv.IsPrint(r):
			switch {
			case r <= 0xff:
				fmt.Fprintf(&b, `\x%02x`, r)
			case r <= 0xffff:
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				fmt.Fprintf(&b, `\U%08x`, r)
			}
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + q
}

// JSON returns a string as json.dumps has it; ascii: with escapes for what is not ASCII.
func JSON(s string, ascii bool) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		e, ok := escapes[r]
		switch {
		case ok:
			b.WriteString(e)
		case r < ' ' || ascii && r > 0x7f && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case ascii && r >= 0x10000:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

var escapes = map[rune]string{'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}
