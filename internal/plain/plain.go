// Package plain makes texts fit to be shown that come from outside: from files that somebody else
// has written, and from other ranks. A terminal obeys what stands between control characters, and a
// line of a log ends where such a text says.
package plain

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Text is s without control characters and other runes that show nothing: they are escaped as in a literal of Go.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case hidden(r):
			q := strconv.QuoteRuneToASCII(r)
			b.WriteString(q[1 : len(q)-1])
		default:
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Clip is s for an error: at most 64 bytes of it, in quotes where it would not be read as one word.
func Clip(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	if q := strconv.QuoteToGraphic(s); q != `"`+s+`"` || strings.TrimSpace(s) != s || s == "" {
		return q
	}
	return s
}

func hidden(r rune) bool { return !strconv.IsGraphic(r) }

// Unmarshal is json.Unmarshal, and all texts in v are Text then, the keys of maps as well.
func Unmarshal(data []byte, v any) error {
	err := json.Unmarshal(data, v)
	clean(reflect.ValueOf(v))
	return err
}

// clean makes the texts in v plain, and returns v where it can be changed in place, else what is to take its place.
func clean(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.String:
		to := reflect.New(v.Type()).Elem()
		to.SetString(Text(v.String()))
		if v.CanSet() {
			v.Set(to)
			return v
		}
		return to
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem())
		}
	case reflect.Interface:
		if v.IsNil() {
			return v
		}
		to := clean(v.Elem())
		if v.CanSet() {
			v.Set(to)
			return v
		}
		return to
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Field(i); f.CanSet() {
				clean(f)
			}
		}
	case reflect.Slice, reflect.Array:
		if k := v.Type().Elem().Kind(); k <= reflect.Complex128 { // numbers, of which there may be millions
			return v
		}
		for i := range v.Len() {
			clean(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			value, key := clean(copyOf(v.MapIndex(k))), clean(copyOf(k))
			v.SetMapIndex(k, reflect.Value{})
			v.SetMapIndex(key, value)
		}
	}
	return v
}

// copyOf is v where it can be changed.
func copyOf(v reflect.Value) reflect.Value {
	to := reflect.New(v.Type()).Elem()
	to.Set(v)
	return to
}
