// Package python has the values of a template, which are Python's, and what can be done with them.
package python

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/train/data/chat/internal/literal"
)

// The values of a template are those of Python: nil for None, bool, int64, float64, string, *list,
// *dict, *function and undefined.
type (
	List struct {
		Items []any
		Tuple bool
	}
	Dict struct { // in the order of insertion
		Keys []any
		At   map[any]any
		Free bool // a namespace, which set may change
	}
	Function struct {
		name string
		Call func(b *Budget, a Arguments) any
	}
	Undefined struct{ Name string }
)

// NewDict makes an empty Dict.
func NewDict() *Dict { return &Dict{At: map[any]any{}} }

// Set gives a key a value.
func (d *Dict) Set(key, value any) {
	switch key.(type) {
	case nil, bool, int64, float64, string:
	default:
		panic(Failed(0, "a key of type %s", TypeOf(key)))
	}
	if _, ok := d.At[key]; !ok {
		d.Keys = append(d.Keys, key)
	}
	d.At[key] = value
}

// TypeOf returns the name of a value's type.
func TypeOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *List:
		if v.Tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case Undefined:
		return "undefined"
	}
	return "function"
}

// Truth reports whether a value counts as true.
func Truth(v any) bool {
	switch v := v.(type) {
	case nil, Undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *List:
		return len(v.Items) > 0
	case *Dict:
		return len(v.Keys) > 0 || v.Free
	}
	return true
}

// num is v as a float, and whether it is a number.
func num(v any) (float64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// equal compares as Python's == does.
func (b *Budget) equal(x, y any) bool {
	defer b.deeper()()
	if n, ok := num(x); ok {
		m, ok := num(y)
		return ok && n == m
	}
	switch x := x.(type) {
	case *List:
		y, ok := y.(*List)
		return ok && x.Tuple == y.Tuple && slices.EqualFunc(x.Items, y.Items, b.equal)
	case *Dict:
		y, ok := y.(*Dict)
		if !ok || len(x.Keys) != len(y.Keys) {
			return false
		}
		for _, k := range x.Keys {
			if w, ok := y.At[k]; !ok || !b.equal(x.At[k], w) {
				return false
			}
		}
		return true
	case Undefined:
		_, ok := y.(Undefined)
		return ok
	}
	return x == y
}

// less orders numbers, strings and lists.
func (b *Budget) less(x, y any) bool {
	defer b.deeper()()
	if n, ok := num(x); ok {
		if m, ok := num(y); ok {
			return n < m
		}
	}
	if s, ok := x.(string); ok {
		if t, ok := y.(string); ok {
			return s < t
		}
	}
	if l, ok := x.(*List); ok {
		if m, ok := y.(*List); ok {
			for i := range min(len(l.Items), len(m.Items)) {
				if !b.equal(l.Items[i], m.Items[i]) {
					return b.less(l.Items[i], m.Items[i])
				}
			}
			return len(l.Items) < len(m.Items)
		}
	}
	panic(Failed(0, "%s and %s have no order", TypeOf(x), TypeOf(y)))
}

// Text returns v as Python's str has it.
func (b *Budget) Text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case Undefined:
		return ""
	}
	var out strings.Builder
	(&Dump{B: &out, Budget: b, repr: true}).Write(v, 0)
	return out.String()
}

// Dump writes values as JSON, as Python's json does it, or as repr does.
type Dump struct {
	B            *strings.Builder
	Budget       *Budget
	repr         bool
	Ascii, Keys  bool // keys: sorted
	Indent       string
	Comma, Colon string
}

// MostDeep bounds values in values, and expressions in expressions.
const MostDeep = 200

// Write writes a value that is so deep in others.
func (d *Dump) Write(v any, deep int) {
	d.Budget.Step()
	if s, ok := v.(string); ok {
		d.Budget.Grow(len(s))
	}
	if deep > MostDeep {
		panic(Failed(0, "values are nested more than %d deep", MostDeep))
	}
	words := map[any]string{nil: "null", true: "true", false: "false"}
	if d.repr {
		words = map[any]string{nil: "None", true: "True", false: "False"}
		if d.Comma == "" {
			d.Comma, d.Colon = ", ", ": "
		}
	}
	switch v := v.(type) {
	case nil, bool:
		d.B.WriteString(words[v])
	case int64:
		d.B.WriteString(strconv.FormatInt(v, 10))
	case float64:
		d.B.WriteString(literal.Float(v, d.repr))
	case string:
		if d.repr {
			d.B.WriteString(literal.Python(v))
		} else {
			d.B.WriteString(literal.JSON(v, d.Ascii))
		}
	case *List:
		brackets := "[]"
		if d.repr && v.Tuple {
			if brackets = "()"; len(v.Items) == 1 {
				brackets = "(,)"
			}
		}
		d.all(brackets, len(v.Items), deep, func(i int) { d.Write(v.Items[i], deep+1) })
	case *Dict:
		order := v.Keys
		if d.Keys {
			order = slices.Clone(order)
			slices.SortFunc(order, d.Budget.compare)
		}
		d.all("{}", len(order), deep, func(i int) {
			switch key, isText := order[i].(string); {
			case d.repr:
				d.Write(order[i], deep+1)
			case isText:
				d.B.WriteString(literal.JSON(key, d.Ascii))
			default: // JSON has no other keys
				d.B.WriteByte('"')
				d.Write(order[i], deep+1)
				d.B.WriteByte('"')
			}
			d.Budget.Grow(len(d.Colon))
			d.B.WriteString(d.Colon)
			d.Write(v.At[order[i]], deep+1)
		})
	default:
		if _, not := v.(Undefined); !not || !d.repr {
			panic(Failed(0, "%s is not %s", TypeOf(v), map[bool]string{true: "text", false: "JSON"}[d.repr]))
		}
		d.B.WriteString("Undefined")
	}
}

func (d *Dump) all(brackets string, n, deep int, one func(int)) {
	d.B.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			d.Budget.Grow(len(d.Comma))
			d.B.WriteString(d.Comma)
		}
		if d.Indent != "" {
			d.Budget.Grow(len(d.Indent) * (deep + 1))
			d.B.WriteString("\n" + strings.Repeat(d.Indent, deep+1))
		}
		one(i)
	}
	if d.Indent != "" && n > 0 {
		d.B.WriteString("\n" + strings.Repeat(d.Indent, deep))
	}
	d.B.WriteString(brackets[1:])
}

func (b *Budget) compare(x, y any) int {
	switch {
	case b.less(x, y):
		return -1
	case b.less(y, x):
		return 1
	}
	return 0
}
