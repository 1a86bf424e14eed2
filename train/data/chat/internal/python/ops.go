package python

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// Items are what a loop over v goes through.
func Items(v any) []any {
	switch v := v.(type) {
	case Undefined:
		return nil
	case *List:
		return v.Items
	case *Dict:
		return v.Keys
	case string:
		all := make([]any, 0, len(v))
		for _, r := range v {
			all = append(all, string(r))
		}
		return all
	}
	panic(Failed(0, "%s has no items", NameOf(v)))
}

// Compares compares x and y by an operator.
func (b *Budget) Compares(op string, x, y any) bool {
	b.Weigh(x)
	b.Weigh(y)
	switch op {
	case "==":
		return b.equal(x, y)
	case "!=":
		return !b.equal(x, y)
	case "<":
		return b.less(x, y)
	case ">":
		return b.less(y, x)
	case "<=":
		return !b.less(y, x)
	case ">=":
		return !b.less(x, y)
	case "not in":
		return !b.contains(y, x)
	}
	return b.contains(y, x)
}

// contains reports whether x is in all.
func (b *Budget) contains(all, x any) bool {
	switch all := all.(type) {
	case string:
		s, ok := x.(string)
		if !ok {
			panic(Failed(0, "in a string there are strings, and no %s", TypeOf(x)))
		}
		return strings.Contains(all, s)
	case *Dict:
		switch x.(type) {
		case *List, *Dict:
			return false
		}
		_, ok := all.At[x]
		return ok
	}
	for _, y := range Items(all) {
		if b.equal(x, y) {
			return true
		}
	}
	return false
}

// Calculate computes a op b.
func Calculate(r *Budget, op string, a, b any) any {
	if op == "~" {
		s, t := r.Text(a), r.Text(b)
		r.Grow(len(s) + len(t))
		return s + t
	}
	if s, ok := a.(string); ok && op == "+" {
		if t, ok := b.(string); ok {
			r.Grow(len(s) + len(t))
			return s + t
		}
	}
	if l, ok := a.(*List); ok && op == "+" {
		if m, ok := b.(*List); ok && l.Tuple == m.Tuple {
			r.Grow(16 * (len(l.Items) + len(m.Items)))
			return &List{Items: append(append([]any(nil), l.Items...), m.Items...), Tuple: l.Tuple}
		}
	}
	if n, ok := b.(int64); ok && op == "*" {
		if s, ok := a.(string); ok {
			n = max(n, 0)
			if len(s) > 0 && n > int64(MostText/len(s)) {
				r.Grow(MostText + 1)
			}
			r.Grow(len(s) * int(n))
			return strings.Repeat(s, int(n))
		}
	}
	x, okX := num(a)
	y, okY := num(b)
	if !okX || !okY {
		panic(Failed(0, "%s %s %s is not supported", NameOf(a), op, NameOf(b)))
	}
	if (op == "/" || op == "//" || op == "%") && y == 0 {
		panic(Failed(0, "a division by zero"))
	}
	i, okX := Whole(a)
	k, okY := Whole(b)
	if okX && okY && op != "/" {
		if n, ok := integer(op, i, k); ok {
			return n
		}
		panic(Failed(0, "%d %s %d is no integer of 64 bits", i, op, k))
	}
	switch op {
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	case "/":
		return x / y
	case "//":
		return math.Floor(x / y)
	case "%":
		return x - y*math.Floor(x/y)
	}
	return math.Pow(x, y)
}

// Whole returns v as an integer, and whether it is one.
func Whole(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		n, _ := num(v)
		return int64(n), true
	case int64:
		return v, true
	}
	return 0, false
}

// integer calculates with integers, and says whether the result is one of 64 bits.
func integer(op string, a, b int64) (n int64, ok bool) {
	switch op {
	case "+":
		n = a + b
		return n, (n > a) == (b > 0)
	case "-":
		n = a - b
		return n, (n < a) == (b > 0)
	case "*":
		n = a * b
		return n, a == 0 || n/a == b && !(a == -1 && b == math.MinInt64)
	case "//", "%":
		if b == -1 {
			if op == "%" {
				return 0, true
			}
			return -a, a != math.MinInt64
		}
		q, m := a/b, a%b
		if m != 0 && (m < 0) != (b < 0) {
			q, m = q-1, m+b
		}
		if op == "%" {
			return m, true
		}
		return q, true
	}
	n = 1
	for ok = b >= 0 && b < 64; ok && b > 0; b-- {
		n, ok = integer("*", n, a)
	}
	return n, ok
}

// Attribute returns v.key: a method, or an item of a dict.
func Attribute(v any, key any) any {
	name, isName := key.(string)
	switch v := v.(type) {
	case Undefined:
		panic(Failed(0, "%s is not defined, and has no field %v", v.Name, key))
	case *Dict:
		if isName && !v.Free {
			if m := methodOfDict(v, name); m != nil {
				return m
			}
		}
	case string:
		if isName {
			if m := methodOfString(v, name); m != nil {
				return m
			}
		}
	}
	return Index(v, key)
}

// Index returns v[key].
func Index(v, key any) any {
	switch v := v.(type) {
	case Undefined:
		panic(Failed(0, "%s is not defined, and has no item %s", v.Name, fmt.Sprint(key)))
	case *Dict:
		switch key.(type) {
		case *List, *Dict, *Function:
		default:
			if x, ok := v.At[key]; ok {
				return x
			}
		}
	case *List:
		if i, ok := place(key, len(v.Items)); ok {
			return v.Items[i]
		}
	case string:
		if n, ok := key.(int64); ok {
			runes := []rune(v)
			if i, ok := place(n, len(runes)); ok {
				return string(runes[i])
			}
		}
	}
	return Undefined{fmt.Sprint(key)}
}

// place is where an index is in n items: a negative one counts from the end.
func place(key any, n int) (int, bool) {
	i, ok := key.(int64)
	if ok && i < 0 {
		i += int64(n)
	}
	return int(i), ok && i >= 0 && i < int64(n)
}

// Slice returns v[from:to:by].
func Slice(v any, at [3]any) any {
	if s, ok := v.(string); ok {
		return string(cut([]rune(s), at))
	}
	l, ok := v.(*List)
	if !ok {
		panic(Failed(0, "%s has no parts", NameOf(v)))
	}
	return &List{Items: cut(l.Items, at), Tuple: l.Tuple}
}

func cut[T any](all []T, at [3]any) (part []T) {
	n := int64(len(all))
	by := int64(1)
	if x, ok := at[2].(int64); ok {
		by = x
	}
	if by == 0 {
		panic(Failed(0, "a step of 0"))
	}
	bound := func(v any, or int64) int64 {
		i, ok := v.(int64)
		switch {
		case !ok && v != nil:
			panic(Failed(0, "a part from or to a %s", TypeOf(v)))
		case !ok:
			return or
		case i < 0:
			i += n
		}
		if by < 0 {
			return max(min(i, n-1), -1)
		}
		return max(min(i, n), 0)
	}
	if by > 0 {
		by = min(by, n+1)
		for i, to := bound(at[0], 0), bound(at[1], n); i < to; i += by {
			part = append(part, all[i])
		}
		return part
	}
	by = max(by, -n-1)
	for i, to := bound(at[0], n-1), bound(at[1], -1); i > to; i += by {
		part = append(part, all[i])
	}
	return part
}

// Length returns len(v).
func Length(v any) int {
	if s, ok := v.(string); ok {
		return utf8.RuneCountInString(s)
	}
	return len(Items(v))
}
