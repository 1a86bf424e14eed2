// Package hlo writes programs as StableHLO text, for package xla to compile, with their gradients. It imports
// nothing.
//
//	var f hlo.Func
//	x, w := f.Arg(hlo.F32, 8, 4), f.Arg(hlo.F32, 4)
//	loss := hlo.Dot(x, w, []int{1}, []int{0}, nil, nil).Tanh().SumAll()
//	text, err := f.Text("step", append([]*hlo.Value{loss}, hlo.Grad(loss, x, w)...)...)
//
// Operations return new values; none is changed. They broadcast from the right, as NumPy does: the
// last axes meet, and an axis that is missing or has the length 1 is repeated. Operands must have
// one type: [Value.As] converts.
//
// An operation whose operands do not fit does not panic: the first such error, with the line that made it, comes from
// [Func.Text], and values that follow from it mean nothing.
//
// [Grad] walks back over what was written, and writes gradients as more operations; those of
// products are products, which is what makes them fast. [With] gives a value a gradient by hand.
// Operations whose comment says so have none: they count as constants.
package hlo

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// A Type is one of elements.
type Type string

// The types of elements.
const (
	Bool                Type = "i1"
	I8, I16, I32, I64   Type = "i8", "i16", "i32", "i64"
	U8, U16, U32, U64   Type = "ui8", "ui16", "ui32", "ui64"
	F16, BF16, F32, F64 Type = "f16", "bf16", "f32", "f64"
	// F8E4M3 has 3 bits of mantissa and numbers up to 448, F8E5M2 2 and up to 57,344. They are for products:
	// see DotAs.
	F8E4M3, F8E5M2 Type = "f8E4M3FN", "f8E5M2"
)

func (t Type) integer() bool { return t[0] == 'i' || t[0] == 'u' }

// narrow is a type in which sums lose much.
func (t Type) narrow() bool { return t == F16 || t == BF16 || t[:2] == "f8" }

func (t Type) known() bool {
	return slices.Contains([]Type{Bool, I8, I16, I32, I64, U8, U16, U32, U64, F16, BF16, F32, F64, F8E4M3, F8E5M2}, t)
}

// A Func is a program in the making. Its zero value is an empty program. It is used by one goroutine at a time.
type Func struct {
	// Precision is that of products of F32 which are written from now on: DEFAULT, which a device may make
	// with fewer bits (TF32), HIGH or HIGHEST, which is that of F32. It may be changed at any time.
	Precision string

	args    strings.Builder
	body    []byte
	region  *inner // the function of a loop that is being written
	values  int
	made    int // values so far, arguments and those of With, too
	nargs   int
	aliased []int
	err     error
}

// A Value is an array that the program computes.
type Value struct {
	f    *Func
	name string
	t    Type
	dims []int
	in   []*Value
	back Gradient
	made int    // its number among all
	at   *inner // the function that it is in
	leaf bool   // an argument, of the program or of a function of its own
}

// A Gradient returns what each input of an operation contributes, given the gradient of its result;
// nil contributes nothing.
type Gradient func(d *Value) []*Value

// Type returns the type of the elements.
func (v *Value) Type() Type { return v.t }

// Dims returns the dimensions.
func (v *Value) Dims() []int { return slices.Clone(v.dims) }

// Rank returns the number of dimensions.
func (v *Value) Rank() int { return len(v.dims) }

// Len returns the number of elements.
func (v *Value) Len() int { return product(v.dims) }

// Func returns the program that v is in.
func (v *Value) Func() *Func { return v.f }

// count is n numbers, from first on.
func count(first, n int) []int {
	x := make([]int, n)
	for i := range x {
		x[i] = first + i
	}
	return x
}

func product(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Arg is the next argument.
func (f *Func) Arg(t Type, dims ...int) *Value { return f.arg(t, -1, dims) }

// Donated is the next argument, whose memory becomes that of a result, by number, if whoever runs
// the program donates it. The two must be of one shape.
func (f *Func) Donated(result int, t Type, dims ...int) *Value {
	if result < 0 {
		f.fail("argument %d: donated to result %d", f.nargs, result)
	}
	return f.arg(t, result, dims)
}

func (f *Func) arg(t Type, result int, dims []int) *Value {
	v := f.add(&Value{name: fmt.Sprintf("%%a%d", f.nargs), t: t, dims: slices.Clone(dims), leaf: true})
	f.check(t, dims)
	if f.nargs++; f.nargs > 1 {
		f.args.WriteString(", ")
	}
	f.args.WriteString(v.name + ": " + v.text())
	if result >= 0 {
		fmt.Fprintf(&f.args, " {tf.aliasing_output = %d : i32}", result)
		f.aliased = append(f.aliased, result)
	}
	return v
}

// check notes a type or dimensions that are none.
func (f *Func) check(t Type, dims []int) {
	if !t.known() {
		f.fail("%q is no type", string(t))
	}
	for _, d := range dims {
		if d < 0 {
			f.fail("dimensions %v", dims)
		}
	}
}

// Text returns the program with these results. name is letters, digits and underscores.
func (f *Func) Text(name string, results ...*Value) (string, error) {
	if f.err != nil {
		return "", f.err
	}
	if name == "" || strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", r)
	}) {
		return "", fmt.Errorf("hlo: the name %q of a program: give letters, digits and underscores", name)
	}
	names, types := make([]string, len(results)), make([]string, len(results))
	for i, v := range results {
		if v == nil || v.f != f {
			return "", fmt.Errorf("hlo: result %d of program %s is of another program", i, name)
		}
		names[i], types[i] = v.name, v.text()
	}
	if f.reached(results); f.err != nil {
		return "", f.err
	}
	for _, r := range f.aliased {
		if r >= len(results) {
			return "", fmt.Errorf("hlo: program %s: an argument is donated to result %d, but there are %d", name, r,
				len(results))
		}
	}
	if len(results) == 0 {
		return "", errors.New("hlo: a program without results")
	}
	return fmt.Sprintf("module @%s {\nfunc.func @main(%s) -> (%s) {\n%sreturn %s : %s\n}\n}\n", name, f.args.String(),
		strings.Join(types, ", "),
		f.body, strings.Join(names, ", "), strings.Join(types, ", ")), nil
}

// Err returns the first error so far.
func (f *Func) Err() error { return f.err }

// Fail notes an error of whoever writes the program, as operations do: Text returns the first.
func (f *Func) Fail(err error) { f.fail("%w", err) }

// fail notes the first error, and where the program made it.
func (f *Func) fail(format string, args ...any) {
	if f.err != nil {
		return
	}
	at := ""
	var pcs [32]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		x, more := frames.Next()
		if !strings.HasPrefix(x.Function, "github.com/goccl/goccl/xla/hlo.") &&
			!strings.HasPrefix(x.Function, "github.com/goccl/goccl/xla/nn.") {
			at = fmt.Sprintf("%s:%d: ", x.File[strings.LastIndexByte(x.File, '/')+1:], x.Line)
		}
		if at != "" || !more {
			break
		}
	}
	f.err = fmt.Errorf("hlo: "+at+format, args...)
}

// fits notes values of other programs.
func (v *Value) fits(op string, others ...*Value) bool {
	for _, o := range others {
		if o == nil || o.f != v.f {
			v.f.fail("%s: an operand is of another program", op)
			return false
		}
	}
	return v.f.err == nil
}

func (v *Value) text() string { return typeText(v.t, v.dims) }

func typeText(t Type, dims []int) string {
	var b strings.Builder
	b.WriteString("tensor<")
	for _, d := range dims {
		fmt.Fprintf(&b, "%dx", d)
	}
	return b.String() + string(t) + ">"
}

func list(x []int) string {
	s := make([]string, len(x))
	for i, v := range x {
		s[i] = fmt.Sprint(v)
	}
	return strings.Join(s, ", ")
}

// array is an attribute of numbers.
func array(x []int) string {
	if len(x) == 0 {
		return "array<i64>"
	}
	return "array<i64: " + list(x) + ">"
}

// op writes an operation with one result.
func (f *Func) op(name, attributes string, t Type, dims []int, back Gradient, in ...*Value) *Value {
	out := f.value(t, dims, in)
	out.back = back
	f.write([]*Value{out}, name, attributes, in)
	return out
}

func (f *Func) value(t Type, dims []int, in []*Value) *Value {
	f.values++
	return f.add(&Value{name: fmt.Sprintf("%%%d", f.values), t: t, dims: dims, in: in})
}

// add counts a value.
func (f *Func) add(v *Value) *Value {
	f.made++
	v.f, v.made, v.at = f, f.made, f.region
	return v
}

// write writes an operation in MLIR's generic form.
func (f *Func) write(out []*Value, name, attributes string, in []*Value) {
	var o, ot, n, t []string
	for _, v := range out {
		o, ot = append(o, v.name), append(ot, v.text())
	}
	for _, v := range in {
		n, t = append(n, v.name), append(t, v.text())
	}
	f.reached(in)
	f.body = fmt.Appendf(f.body, "%s = %q(%s) %s : (%s) -> (%s)\n", strings.Join(o, ", "), name, strings.Join(n, ", "),
		attributes, strings.Join(t, ", "), strings.Join(ot, ", "))
}
