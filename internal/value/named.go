package value

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// What is in an interface travels with its type: how many pointers it is, and what they lead to,
// its base. A base is a number: of those that every program has, of one that was named before, or
// of one that is named here. Its name is what gob.Register knows it by, and package gob alone can
// look that up: what travels is a base of its own, encoded by gob as what is in an interface.

// basics are the types that need no name, as in package gob.
var basics = []reflect.Type{
	reflect.TypeFor[bool](), reflect.TypeFor[string](), reflect.TypeFor[int](), reflect.TypeFor[int8](),
	reflect.TypeFor[int16](),
	reflect.TypeFor[int32](), reflect.TypeFor[int64](), reflect.TypeFor[uint](), reflect.TypeFor[uint8](),
	reflect.TypeFor[uint16](),
	reflect.TypeFor[uint32](), reflect.TypeFor[uint64](), reflect.TypeFor[uintptr](), reflect.TypeFor[float32](),
	reflect.TypeFor[float64](),
	reflect.TypeFor[complex64](), reflect.TypeFor[complex128](),
	reflect.TypeFor[[]bool](), reflect.TypeFor[[]string](), reflect.TypeFor[[]int](), reflect.TypeFor[[]int8](),
	reflect.TypeFor[[]int16](),
	reflect.TypeFor[[]int32](), reflect.TypeFor[[]int64](), reflect.TypeFor[[]uint](), reflect.TypeFor[[]uint8](),
	reflect.TypeFor[[]uint16](),
	reflect.TypeFor[[]uint32](), reflect.TypeFor[[]uint64](), reflect.TypeFor[[]uintptr](), reflect.TypeFor[[]float32](),
	reflect.TypeFor[[]float64](),
	reflect.TypeFor[[]complex64](), reflect.TypeFor[[]complex128](),
}

// The numbers of bases. 0 is nil.
var (
	newBase   = uint64(len(basics)) + 1 // a name follows
	firstBase = newBase + 1             // of those that were named
	basic     = map[reflect.Type]uint64{}
)

func init() {
	for i, t := range basics {
		basic[t] = uint64(i) + 1
	}
}

// mostPointers is how many pointers may lead to a base.
const mostPointers = 8

// mostName is how long the name of a base may be: a description of the type is in it.
const mostName = 1 << 20

func (c *coder) encInterface(e *encoder, p unsafe.Pointer) *refusal {
	v := c.at(p)
	if v.IsNil() {
		e.out = append(e.out, 0)
		return nil
	}
	v = v.Elem()
	base, pointers := v.Type(), 0
	for base.Kind() == reflect.Pointer && base.Name() == "" && pointers < mostPointers {
		base, pointers = base.Elem(), pointers+1
	}
	if base.Kind() == reflect.Pointer {
		return refuse("a %v in an interface: too many pointers", v.Type())
	}
	at := reflect.New(v.Type())
	at.Elem().Set(v)
	if r := e.base(base, at.Elem()); r != nil {
		return r
	}
	e.out = append(e.out, byte(pointers))
	if r := e.nest(); r != nil { // what can lead back is behind a pointer, a slice or a map in it
		return r
	}
	defer func() { e.depth-- }()
	if r := coderOf(v.Type()).enc(e, at.UnsafePointer()); r != nil {
		return r.in(fmt.Sprintf(".(%v)", v.Type()))
	}
	return nil
}

// base appends the number of a base, and its name if it has none yet. v is a value of it, behind pointers.
func (e *encoder) base(t reflect.Type, v reflect.Value) *refusal {
	if n := basic[t]; n > 0 {
		e.uint(n)
		return nil
	}
	if n, ok := e.types[t]; ok {
		e.uint(firstBase + uint64(n))
		return nil
	}
	name, err := nameOf(t, v)
	if err != nil {
		return refuse("a %v in an interface: %v", t, err)
	}
	if e.types == nil {
		e.types = map[reflect.Type]int{}
	}
	e.types[t] = len(e.types)
	e.uint(newBase)
	e.out = binary.LittleEndian.AppendUint64(e.out, coderOf(t).print())
	return e.bytes(string(name))
}

func (c *coder) decInterface(d *decoder, p unsafe.Pointer) *refusal {
	n, ok := d.uint()
	if !ok || n == 0 {
		return cutIf(!ok)
	}
	var t reflect.Type
	switch {
	case n < newBase:
		t = basics[n-1]
	case n == newBase:
		var r *refusal
		if t, r = d.base(); r != nil {
			return r
		}
		d.types = append(d.types, t)
	case n-firstBase < uint64(len(d.types)):
		t = d.types[n-firstBase]
	default:
		return cutShort
	}
	pointers, ok := d.take(1)
	if !ok || pointers[0] > mostPointers {
		return cutShort
	}
	for range pointers[0] {
		t = reflect.PointerTo(t)
	}
	if !t.AssignableTo(c.typ) {
		return refuse("a %v is no %v", t, c.typ)
	}
	if r := d.enter(); r != nil {
		return r
	}
	defer d.leave()
	of := coderOf(t)
	if !d.has(of.least) {
		return cutShort
	}
	v := reflect.New(t)
	if r := of.dec(d, v.UnsafePointer()); r != nil {
		return r.in(fmt.Sprintf(".(%v)", t))
	}
	c.at(p).Set(v.Elem())
	return nil
}

// base is the base that is named.
func (d *decoder) base() (reflect.Type, *refusal) {
	print, ok := d.take(8)
	if !ok {
		return nil, cutShort
	}
	name, ok := d.bytes()
	if !ok || len(name) > mostName {
		return nil, cutShort
	}
	t, err := typeOf(name)
	if err != nil {
		return nil, refuse("what is in an interface: %v", err)
	}
	if coderOf(t).print() != binary.LittleEndian.Uint64(print) {
		return nil, otherType(t.String(), t)
	}
	return t, nil
}

// inside has package gob look up the name of what is in it.
type inside struct{ V any }

var names sync.Map // reflect.Type: []byte

// nameOf is the name of a base, by a zero of it, or by v where gob does not encode that.
func nameOf(t reflect.Type, v reflect.Value) ([]byte, error) {
	if b, ok := names.Load(t); ok {
		return b.([]byte), nil
	}
	b, err := encodeInside(reflect.New(t))
	if err == nil {
		names.Store(t, b)
		return b, nil
	}
	if ownWay(t) == nil {
		return nil, err
	}
	return encodeInside(v)
}

func encodeInside(v reflect.Value) (data []byte, err error) {
	defer recovered(&err)
	var b bytes.Buffer
	err = gob.NewEncoder(&b).Encode(inside{v.Interface()})
	if err == nil && b.Len() > mostName {
		err = errors.New("the name of its type is too long")
	}
	return b.Bytes(), err
}

// typeOf is the base that has a name.
func typeOf(name []byte) (t reflect.Type, err error) {
	defer recovered(&err)
	var in inside
	if err := gob.NewDecoder(bytes.NewReader(name)).Decode(&in); err != nil {
		return nil, err
	}
	if in.V == nil {
		return nil, cutShort
	}
	for t = reflect.TypeOf(in.V); t.Kind() == reflect.Pointer && t.Name() == ""; {
		t = t.Elem()
	}
	return t, nil
}

func recovered(err *error) {
	if x := recover(); x != nil {
		*err = fmt.Errorf("its encoder or decoder panicked: %v", x)
	}
}
