// Package filters has the filters, tests and functions that a template may use.
package filters

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/train/data/chat/internal/python"
)

// Known lists names.
func Known[V any](m map[string]V) string {
	return strings.Join(slices.Sorted(maps.Keys(m)), ", ")
}

var Filters map[string]func(b *python.Budget, v any, a python.Arguments) any

func init() { // a variable that its own functions use
	Filters = map[string]func(b *python.Budget, v any, a python.Arguments) any{
		"trim": func(b *python.Budget, v any, a python.Arguments) any {
			return python.Strip(b.Text(v), a, true, true)
		},
		"tojson": filterJSON,
		"length": func(b *python.Budget, v any, _ python.Arguments) any { return int64(python.Length(v)) },
		"count":  func(b *python.Budget, v any, _ python.Arguments) any { return int64(python.Length(v)) },
		"upper":  func(b *python.Budget, v any, _ python.Arguments) any { return strings.ToUpper(b.Text(v)) },
		"lower":  func(b *python.Budget, v any, _ python.Arguments) any { return strings.ToLower(b.Text(v)) },
		"capitalize": func(b *python.Budget, v any, _ python.Arguments) any {
			return python.Capitalize(b.Text(v))
		},
		"string": func(b *python.Budget, v any, _ python.Arguments) any { return b.Text(v) },
		"safe":   func(b *python.Budget, v any, _ python.Arguments) any { return b.Text(v) },
		"list": func(b *python.Budget, v any, _ python.Arguments) any {
			return &python.List{Items: slices.Clone(python.Items(v))}
		},
		"first": func(b *python.Budget, v any, _ python.Arguments) any { return edge(python.Items(v), 0) },
		"last": func(b *python.Budget, v any, _ python.Arguments) any {
			return edge(python.Items(v), len(python.Items(v))-1)
		},
		"join": filterJoin,
		"default": func(b *python.Budget, v any, a python.Arguments) any {
			if _, not := v.(python.Undefined); not || python.Truth(a.Get(1, "boolean", false)) && !python.Truth(v) {
				return a.Get(0, "default_value", "")
			}
			return v
		},
		"replace": func(b *python.Budget, v any, a python.Arguments) any {
			return python.Replaced(b, b.Text(v), a.Str(0, "old", ""), a.Str(1, "new", ""), a.Int(2, "count", -1))
		},
		"items": func(b *python.Budget, v any, _ python.Arguments) any {
			switch v := v.(type) {
			case *python.Dict:
				return python.PairsOf(v)
			case python.Undefined:
				return &python.List{}
			}
			panic(python.Failed(0, "the items of %s: only a dict has them", python.NameOf(v)))
		},
		"reverse": func(b *python.Budget, v any, _ python.Arguments) any {
			if s, ok := v.(string); ok {
				runes := []rune(s)
				slices.Reverse(runes)
				return string(runes)
			}
			all := slices.Clone(python.Items(v))
			slices.Reverse(all)
			return &python.List{Items: all}
		},
		"map":        filterMap,
		"select":     choose(false, true),
		"reject":     choose(false, false),
		"selectattr": choose(true, true),
		"rejectattr": choose(true, false),
		"int":        filterInt,
	}
	Filters["d"] = Filters["default"]
}

func filterJSON(b *python.Budget, v any, a python.Arguments) any {
	d := python.Dump{B: &strings.Builder{}, Budget: b, Comma: ", ", Colon: ": ",
		Ascii: python.Truth(a.Get(0, "ensure_ascii", false)), Keys: python.Truth(a.Get(3, "sort_keys", false))}
	switch n := a.Get(1, "indent", nil).(type) {
	case int64:
		d.Indent, d.Comma = strings.Repeat(" ", int(max(0, min(n, 64)))), ","
	case string:
		d.Indent, d.Comma = n, ","
	}
	if two := a.Get(2, "separators", nil); two != nil {
		both := python.Items(two)
		if len(both) != 2 {
			panic(python.Failed(0, "separators are two"))
		}
		d.Comma, d.Colon = b.Text(both[0]), b.Text(both[1])
	}
	d.Write(v, 0)
	b.Grow(d.B.Len())
	return d.B.String()
}

func filterJoin(b *python.Budget, v any, a python.Arguments) any {
	var parts []string
	between := a.Str(0, "d", "")
	for _, x := range python.Items(v) {
		if field := a.Get(1, "attribute", nil); field != nil {
			x = python.Attribute(x, field)
		}
		parts = append(parts, b.Text(x))
		b.Grow(len(between) + len(parts[len(parts)-1]))
	}
	return strings.Join(parts, between)
}

func filterMap(b *python.Budget, v any, a python.Arguments) any {
	l := &python.List{}
	field := a.Named["attribute"]
	for _, x := range python.Items(v) {
		b.Step()
		if field != nil {
			if x = python.Attribute(x, field); python.Truth(a.Named["default"]) {
				if _, not := x.(python.Undefined); not {
					x = a.Named["default"]
				}
			}
		} else {
			f, ok := Filters[a.Str(0, "filter", "")]
			if !ok {
				panic(python.Failed(0, "map by the filter %q, which is not supported", a.Str(0, "filter", "")))
			}
			x = f(b, x, python.Arguments{List: a.List[min(1, len(a.List)):], Named: a.Named})
		}
		l.Items = append(l.Items, x)
	}
	return l
}

// choose is a filter that keeps the items that a test says want of, or whose field it does.
func choose(field, want bool) func(b *python.Budget, v any, a python.Arguments) any {
	return func(b *python.Budget, v any, a python.Arguments) any {
		l := &python.List{}
		for _, x := range python.Items(v) {
			b.Step()
			rest, of := a.List, x
			if field {
				if len(rest) == 0 {
					panic(python.Failed(0, "an attribute is missing"))
				}
				of, rest = python.Attribute(x, rest[0]), rest[1:]
			}
			ok := python.Truth(of)
			if len(rest) > 0 {
				test, there := Tests[b.Text(rest[0])]
				if !there {
					panic(python.Failed(0, "the test %s is not supported; these are: %s", b.Text(rest[0]), Known(Tests)))
				}
				ok = test(b, of, python.Arguments{List: rest[1:], Named: a.Named})
			}
			if ok == want {
				l.Items = append(l.Items, x)
			}
		}
		return l
	}
}

func filterInt(b *python.Budget, v any, a python.Arguments) any {
	switch v := v.(type) {
	case string:
		s := strings.TrimSpace(v)
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && f > -1<<62 && f < 1<<62 {
			return int64(f)
		}
	case float64:
		if v > -1<<62 && v < 1<<62 {
			return int64(v)
		}
	default:
		if i, ok := python.Whole(v); ok {
			return i
		}
	}
	return a.Get(0, "default", int64(0))
}

func edge(all []any, i int) any {
	if len(all) == 0 {
		return python.Undefined{Name: "an item of nothing"}
	}
	return all[i]
}

var Tests map[string]func(b *python.Budget, v any, a python.Arguments) bool

func init() {
	is := func(types ...string) func(*python.Budget, any, python.Arguments) bool {
		return func(b *python.Budget, v any, _ python.Arguments) bool {
			return slices.Contains(types, python.TypeOf(v))
		}
	}
	by := func(op string) func(*python.Budget, any, python.Arguments) bool {
		return func(b *python.Budget, v any, a python.Arguments) bool {
			return b.Compares(op, v, a.Get(0, "other", nil))
		}
	}
	remainder := func(v any, by int64) int64 {
		n, ok := v.(int64)
		if !ok || by == 0 {
			panic(python.Failed(0, "%s is no integer, or divided by zero", python.TypeOf(v)))
		}
		return n % by
	}
	Tests = map[string]func(b *python.Budget, v any, a python.Arguments) bool{
		"defined":   func(b *python.Budget, v any, _ python.Arguments) bool { return python.TypeOf(v) != "undefined" },
		"undefined": is("undefined"),
		"none":      is("NoneType"), "None": is("NoneType"),
		"string": is("str"), "mapping": is("dict"), "boolean": is("bool"), "callable": is("function"),
		"number": is("int", "float", "bool"), "integer": is("int"), "float": is("float"),
		"sequence": is("list", "tuple", "str", "dict", "undefined"),
		"iterable": is("list", "tuple", "str", "dict", "undefined"),
		"true":     func(b *python.Budget, v any, _ python.Arguments) bool { return v == true },
		"false":    func(b *python.Budget, v any, _ python.Arguments) bool { return v == false },
		"eq":       by("=="), "equalto": by("=="), "==": by("=="), "ne": by("!="), "!=": by("!="),
		"lt": by("<"), "gt": by(">"), "le": by("<="), "ge": by(">="), "in": by("in"),
		"odd":  func(b *python.Budget, v any, _ python.Arguments) bool { return remainder(v, 2) != 0 },
		"even": func(b *python.Budget, v any, _ python.Arguments) bool { return remainder(v, 2) == 0 },
		"divisibleby": func(b *python.Budget, v any, a python.Arguments) bool {
			n, _ := a.Get(0, "num", nil).(int64)
			return remainder(v, n) == 0
		},
	}
}

// Globals are the functions that a template may call. now is the time of strftime_now.
func Globals(now func() time.Time) map[string]any {
	return map[string]any{
		"range": python.Method("range", func(b *python.Budget, a python.Arguments) any {
			from, to, by := 0, a.Int(0, "stop", 0), 1
			if len(a.List) > 1 {
				from, to, by = a.Int(0, "start", 0), a.Int(1, "stop", 0), a.Int(2, "step", 1)
			}
			if by == 0 {
				panic(python.Failed(b.Line, "range with a step of 0"))
			}
			l := &python.List{}
			for i := from; by > 0 && i < to || by < 0 && i > to; i += by {
				b.Step()
				l.Items = append(l.Items, int64(i))
			}
			return l
		}),
		"namespace": python.Method("namespace", func(_ *python.Budget, a python.Arguments) any {
			d := dictOf(a)
			d.Free = true
			return d
		}),
		"dict": python.Method("dict", func(b *python.Budget, a python.Arguments) any { return dictOf(a) }),
		"raise_exception": python.Method("raise_exception", func(b *python.Budget, a python.Arguments) any {
			panic(python.Failed(b.Line, "the template refuses this: %s", b.Text(a.Get(0, "message", ""))))
		}),
		"strftime_now": python.Method("strftime_now", func(_ *python.Budget, a python.Arguments) any {
			return strftime(now(), a.Str(0, "format", ""))
		}),
	}
}

func dictOf(a python.Arguments) *python.Dict {
	d := python.NewDict()
	if from, ok := a.Get(0, "", nil).(*python.Dict); ok {
		for _, k := range from.Keys {
			d.Set(k, from.At[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(a.Named)) {
		d.Set(k, a.Named[k])
	}
	return d
}

// stamps are the directives of strftime, and Go's layouts.
var stamps = map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'd': "02", 'm': "01", 'y': "06",
	'Y': "2006",
	'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'j': "002"}

func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		layout, ok := stamps[format[i]]
		switch {
		case format[i] == '%':
			b.WriteByte('%')
		case !ok:
			panic(python.Failed(0, "strftime_now with %%%c, which is not supported", format[i]))
		default:
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}
