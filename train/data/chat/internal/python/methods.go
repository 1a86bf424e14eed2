package python

import (
	"slices"
	"strings"
	"unicode"
)

// PairsOf returns the keys of a dict with their values.
func PairsOf(d *Dict) *List {
	l := &List{}
	for _, k := range d.Keys {
		l.Items = append(l.Items, &List{Items: []any{k, d.At[k]}, Tuple: true})
	}
	return l
}

// space is what Python takes for white space.
func space(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }

// Strip takes white space, or the characters of an argument, off the ends of a string.
func Strip(s string, a Arguments, left, right bool) string {
	in := space
	if chars, ok := a.Get(0, "chars", nil).(string); ok {
		set := map[rune]bool{}
		for _, r := range chars {
			set[r] = true
		}
		in = func(r rune) bool { return set[r] }
	}
	if left {
		s = strings.TrimLeftFunc(s, in)
	}
	if right {
		s = strings.TrimRightFunc(s, in)
	}
	return s
}

// Replaced replaces n times in a string; -1: all.
func Replaced(b *Budget, s, old, by string, n int) string {
	times := strings.Count(s, old)
	if n >= 0 {
		times = min(times, n)
	}
	if len(by) > 0 && times > MostText/len(by) {
		b.Grow(MostText + 1)
	}
	b.Grow(len(s) + times*len(by))
	return strings.Replace(s, old, by, n)
}

// Capitalize makes the first character a capital, and no other.
func Capitalize(s string) string {
	for i := range s {
		if i > 0 {
			return strings.ToUpper(s[:i]) + strings.ToLower(s[i:])
		}
	}
	return strings.ToUpper(s)
}

// methodOfDict is a method that templates call of a dict; nil: there is none.
func methodOfDict(d *Dict, name string) any {
	var f func(a Arguments) any
	switch name {
	case "items":
		f = func(Arguments) any { return PairsOf(d) }
	case "keys":
		f = func(Arguments) any { return &List{Items: d.Keys} }
	case "values":
		f = func(Arguments) any {
			l := &List{}
			for _, k := range d.Keys {
				l.Items = append(l.Items, d.At[k])
			}
			return l
		}
	case "get":
		f = func(a Arguments) any {
			if v := Index(d, a.Get(0, "key", nil)); TypeOf(v) != "undefined" {
				return v
			}
			return a.Get(1, "default", nil)
		}
	default:
		return nil
	}
	return Method(name, func(_ *Budget, a Arguments) any { return f(a) })
}

// Method makes a function that a template may call.
func Method(name string, f func(b *Budget, a Arguments) any) *Function {
	return &Function{name, f}
}

// methodOfString is the same of a string.
func methodOfString(s, name string) any {
	affix := func(has func(s, x string) bool) func(*Budget, Arguments) any {
		return func(b *Budget, a Arguments) any {
			if l, ok := a.Get(0, "prefix", nil).(*List); ok {
				return slices.ContainsFunc(l.Items, func(x any) bool { return has(s, b.Text(x)) })
			}
			return has(s, a.Str(0, "prefix", ""))
		}
	}
	f, ok := map[string]func(*Budget, Arguments) any{
		"strip":      func(_ *Budget, a Arguments) any { return Strip(s, a, true, true) },
		"lstrip":     func(_ *Budget, a Arguments) any { return Strip(s, a, true, false) },
		"rstrip":     func(_ *Budget, a Arguments) any { return Strip(s, a, false, true) },
		"startswith": affix(strings.HasPrefix),
		"endswith":   affix(strings.HasSuffix),
		"upper":      func(*Budget, Arguments) any { return strings.ToUpper(s) },
		"lower":      func(*Budget, Arguments) any { return strings.ToLower(s) },
		"capitalize": func(*Budget, Arguments) any { return Capitalize(s) },
		"split":      func(b *Budget, a Arguments) any { return split(b, s, a) },
		"replace": func(b *Budget, a Arguments) any {
			return Replaced(b, s, a.Str(0, "old", ""), a.Str(1, "new", ""), a.Int(2, "count", -1))
		},
	}[name]
	if !ok {
		return nil
	}
	return Method(name, f)
}

func listOfStrings(b *Budget, parts []string) *List {
	b.Grow(16 * len(parts))
	l := &List{}
	for _, x := range parts {
		l.Items = append(l.Items, x)
	}
	return l
}

// split is Python's: without a separator at white space, of which it leaves none.
func split(b *Budget, s string, a Arguments) *List {
	most := a.Int(1, "maxsplit", -1)
	sep, ok := a.Get(0, "sep", nil).(string)
	switch {
	case !ok && most < 0:
		return listOfStrings(b, strings.FieldsFunc(s, space))
	case !ok:
		panic(Failed(0, "split with maxsplit takes a separator"))
	case sep == "":
		panic(Failed(0, "split by an empty separator"))
	}
	all := strings.Split(s, sep)
	if most >= 0 && most < len(all)-1 {
		all = append(all[:most:most], strings.Join(all[most:], sep))
	}
	return listOfStrings(b, all)
}
