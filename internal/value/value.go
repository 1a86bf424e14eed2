package value

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unsafe"
)

// ErrTooLarge is the error of a value that takes more bytes than it may.
var ErrTooLarge = errors.New("too large")

const (
	// mostNested is how many pointers, interfaces, slices and maps may lie in each other: each takes stack.
	mostNested = 100_000
	// mostFirst is how many of those that are entered are looked at one by one.
	mostFirst = 16
)

// Encode returns v encoded, in at most limit bytes.
func Encode[V any](v V, limit int) ([]byte, error) {
	c := coderOf(reflect.TypeFor[V]())
	e := encoder{limit: limit}
	e.out = binary.LittleEndian.AppendUint64(e.out, c.print())
	r := e.bytes(c.typ.String())
	if r == nil {
		p := new(V)
		*p = v
		r = c.enc(&e, unsafe.Pointer(p))
	}
	switch {
	case r != nil && r.large || r == nil && len(e.out) > limit:
		return nil, ErrTooLarge
	case r != nil:
		return nil, r
	}
	return e.out, nil
}

// Decode returns the value that Encode has made data of.
func Decode[V any](data []byte) (V, error) {
	c := coderOf(reflect.TypeFor[V]())
	d, p := decoder{in: data}, new(V)
	print, ok := d.take(8)
	if !ok {
		return *p, cutShort
	}
	name, ok := d.bytes()
	if !ok {
		return *p, cutShort
	}
	if binary.LittleEndian.Uint64(print) != c.print() {
		return *p, otherType(string(name), c.typ)
	}
	r := c.dec(&d, unsafe.Pointer(p))
	if r == nil && len(d.in) > 0 {
		r = refuse("%d bytes follow it", len(d.in))
	}
	if r != nil {
		var none V
		return none, r
	}
	return *p, nil
}

// otherType is the error of bytes of a type that is not t.
func otherType(name string, t reflect.Type) *refusal {
	if len(name) > 100 {
		name = name[:100] + "..."
	}
	if name == t.String() {
		return refuse("it is a %q of other fields: the programs differ", name)
	}
	return refuse("it is a %q", name)
}

// encoder appends a value.
type encoder struct {
	out   []byte
	limit int
	depth int
	first []place              // what is entered now: to the depth mostFirst,
	open  map[place]bool       // and from there on
	types map[reflect.Type]int // that have been named in interfaces, in order
	zone  zone
}

// place is what a pointer, a slice or a map leads to.
type place struct {
	at  unsafe.Pointer
	n   int
	typ reflect.Type
}

// nest notes that what follows lies in something.
func (e *encoder) nest() *refusal {
	if e.depth++; e.depth > mostNested {
		return tooDeep
	}
	return e.room(0)
}

// enter begins what lies at a place, and leave ends it.
func (e *encoder) enter(at unsafe.Pointer, n int, t reflect.Type) *refusal {
	if r := e.nest(); r != nil {
		return r
	}
	p := place{at, n, t}
	if slices.Contains(e.first, p) || e.open[p] {
		return refuse("it leads back to itself")
	}
	switch {
	case e.depth <= mostFirst:
		e.first = append(e.first, p)
	case e.open == nil:
		e.open = map[place]bool{p: true}
	default:
		e.open[p] = true
	}
	return nil
}

func (e *encoder) leave(at unsafe.Pointer, n int, t reflect.Type) {
	if e.depth <= mostFirst {
		e.first = e.first[:len(e.first)-1]
	} else {
		delete(e.open, place{at, n, t})
	}
	e.depth--
}

// room reports whether n bytes more may follow.
func (e *encoder) room(n int) *refusal {
	if len(e.out) > e.limit || n > e.limit-len(e.out) {
		return &refusal{large: true}
	}
	return nil
}

func (e *encoder) uint(n uint64) { e.out = binary.AppendUvarint(e.out, n) }

// bytes appends the length of s, and s.
func (e *encoder) bytes(s string) *refusal {
	if r := e.room(len(s)); r != nil {
		return r
	}
	e.uint(uint64(len(s)))
	e.out = append(e.out, s...)
	return nil
}

// decoder reads a value.
type decoder struct {
	in []byte // what is left
	// how much of it parts take at least that have memory, and whose turn has not come: no others may
	// count on it
	held  int
	depth int
	types []reflect.Type
	zone  zone
}

func (d *decoder) enter() *refusal {
	if d.depth++; d.depth > mostNested {
		return tooDeep
	}
	return nil
}

func (d *decoder) leave() { d.depth-- }

// take is the next n bytes.
func (d *decoder) take(n int) ([]byte, bool) {
	if n < 0 || n > len(d.in) {
		return nil, false
	}
	b := d.in[:n]
	d.in = d.in[n:]
	return b, true
}

// has reports whether n bytes are left for what is to have memory now.
func (d *decoder) has(n int) bool { return n <= len(d.in)-d.held }

// flag is a byte that is 0 or 1.
func (d *decoder) flag() (set, ok bool) {
	b, ok := d.take(1)
	return ok && b[0] == 1, ok && b[0] <= 1
}

func (d *decoder) uint() (uint64, bool) {
	n, size := binary.Uvarint(d.in)
	if size <= 0 {
		return 0, false
	}
	d.in = d.in[size:]
	return n, true
}

// bytes is what a length and bytes say, still part of the input.
func (d *decoder) bytes() ([]byte, bool) {
	n, ok := d.uint()
	if !ok || n > uint64(len(d.in)) {
		return nil, false
	}
	return d.take(int(n))
}

// count is the length of a slice or a map, -1 if it is nil. An element takes least bytes or more;
// if that is 0, there may be most of them.
func (d *decoder) count(least int, most uint64) (int, bool) {
	n, ok := d.uint()
	if least > 0 {
		most = uint64(max(len(d.in)-d.held, 0) / least)
	}
	if !ok || n > 0 && n-1 > most {
		return 0, false
	}
	return int(n) - 1, true
}

// refusal is why a value cannot travel, or why bytes are none.
type refusal struct {
	path  []string // the last step first
	why   string
	large bool
}

// tooDeep and cutShort have no path, and are not added to.
var (
	tooDeep  = refuse("more than %d pointers, slices, maps and interfaces lie in each other", mostNested)
	cutShort = refuse("it is cut short, or is something else")
)

func refuse(format string, a ...any) *refusal { return &refusal{why: fmt.Sprintf(format, a...)} }

// in says that what is refused is at a step of the way.
func (r *refusal) in(step string) *refusal {
	if r == tooDeep || r == cutShort {
		return r
	}
	r.path = append(r.path, step)
	return r
}

// mostSteps is how many steps of a path an error has at either end.
const mostSteps = 12

// Error is the path and the reason.
func (r *refusal) Error() string {
	if len(r.path) == 0 {
		return r.why
	}
	var b strings.Builder
	b.WriteString("at ")
	for i := len(r.path) - 1; i >= 0; i-- {
		if i == len(r.path)-1-mostSteps && i > mostSteps {
			b.WriteString("...")
			i = mostSteps - 1
		}
		b.WriteString(r.path[i])
	}
	return b.String() + ": " + r.why
}
