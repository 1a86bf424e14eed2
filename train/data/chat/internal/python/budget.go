package python

import (
	"fmt"
	"math"
)

// A template is code from outside: these bound what it takes.
const (
	mostSteps = 1 << 21 // statements, turns of loops, calls
	MostText  = 1 << 23 // bytes of a text, and items of a list
	MostCalls = 100     // of macros in macros
)

// Budget counts what a rendering takes, and knows where it is.
type Budget struct {
	Line int // of the template

	steps, bytes int // bytes of all texts that were made
	deep         int // comparisons in comparisons
}

// At says at which line of the template the run is, and counts a step, and more for long values that
// it is about to go through.
func (b *Budget) At(line int, values ...any) {
	b.Line = line
	b.Step()
	for _, v := range values {
		b.Weigh(v)
	}
}

// Weigh counts steps for going through a long value: one for 64 bytes of a text, or 8 items.
func (b *Budget) Weigh(v any) {
	n := 0
	switch v := v.(type) {
	case string:
		n = len(v) / 64
	case *List:
		n = len(v.Items) / 8
	case *Dict:
		n = len(v.Keys) / 8
	}
	if b.steps += n; n > 0 {
		b.Step()
	}
}

// Step counts a step.
func (b *Budget) Step() {
	if b.steps++; b.steps > mostSteps {
		panic(Failed(b.Line, "the template takes more than %d steps", mostSteps))
	}
}

// deeper begins a comparison in another, and returns what ends it.
func (b *Budget) deeper() func() {
	b.Step()
	if b.deep++; b.deep > MostDeep {
		panic(Failed(b.Line, "values are nested more than %d deep", MostDeep))
	}
	return func() { b.deep-- }
}

// Grow accounts for a text or a list that is made.
func (b *Budget) Grow(n int) {
	if b.bytes += n; n < 0 || n > MostText || b.bytes > 64*MostText {
		panic(Failed(b.Line, "the template makes more than %d bytes of text", MostText))
	}
}

// Failure is an error of a template. It is thrown, and comes out of Parse and Render as an error.
type Failure struct {
	Line int // 0: where the run is
	text string
}

// Failed makes a Failure.
func Failed(line int, format string, args ...any) *Failure {
	return &Failure{line, fmt.Sprintf(format, args...)}
}

func (f *Failure) Error() string {
	if f.Line == 0 {
		return f.text
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.text)
}

// Rescue makes an error of a failure that was thrown.
func Rescue(err *error) {
	switch p := recover().(type) {
	case nil:
	case *Failure:
		*err = p
	default:
		panic(p)
	}
}

// Arguments are those of a call, a filter or a test.
type Arguments struct {
	List  []any
	Named map[string]any
}

// Get returns the argument at a place, or of a name, or what stands for it.
func (a Arguments) Get(i int, name string, or any) any {
	if i < len(a.List) {
		return a.List[i]
	}
	if v, ok := a.Named[name]; ok {
		return v
	}
	return or
}

// Str returns one that must be a string.
func (a Arguments) Str(i int, name, or string) string {
	s, ok := a.Get(i, name, or).(string)
	if !ok {
		panic(Failed(0, "the argument %s must be a string", name))
	}
	return s
}

// Int returns one that must be an integer, of 32 bits.
func (a Arguments) Int(i int, name string, or int) int {
	n, ok := a.Get(i, name, int64(or)).(int64)
	if !ok || n > math.MaxInt32 || n < math.MinInt32 {
		panic(Failed(0, "the argument %s must be an integer", name))
	}
	return int(n)
}

// NameOf returns what an error calls a value.
func NameOf(v any) string {
	if u, ok := v.(Undefined); ok {
		return u.Name
	}
	return fmt.Sprintf("a %s", TypeOf(v))
}
