package value

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
	"unsafe"
)

// coder is how values of a type are encoded at, and decoded to, an address.
type coder struct {
	typ   reflect.Type
	size  int
	plain bool // its bytes in memory are what travels, and any bytes are a value
	least int  // how many bytes an encoded one takes at least: 0 only if it has no bytes in memory
	enc   func(e *encoder, p unsafe.Pointer) *refusal
	dec   func(d *decoder, p unsafe.Pointer) *refusal
	print func() uint64 // see print.go
}

var coders sync.Map // reflect.Type: *coder

// coderOf is the coder of t.
func coderOf(t reflect.Type) *coder {
	if c, ok := coders.Load(t); ok {
		return c.(*coder)
	}
	b := builder{}
	b.coder(t)
	for t, c := range b { // now that each of them is whole
		coders.LoadOrStore(t, c)
	}
	c, _ := coders.Load(t)
	return c.(*coder)
}

// builder has the coders of a type and of its parts, of which one may contain the type.
type builder map[reflect.Type]*coder

// coder is the coder of t. Where t is a part of itself, it is not whole yet; that part is behind a
// pointer, a slice, a map or an interface, which need to know only where it is.
func (b builder) coder(t reflect.Type) *coder {
	if c, ok := coders.Load(t); ok {
		return c.(*coder)
	}
	if c := b[t]; c != nil {
		return c
	}
	c := &coder{typ: t, size: int(t.Size()), least: 1}
	c.print = sync.OnceValue(func() uint64 { return printOf(t) })
	b[t] = c
	if t == timeType {
		c.time()
		return c
	}
	if w := ownWay(t); w != nil {
		c.byItself(w)
		return c
	}
	switch t.Kind() {
	case reflect.Bool:
		c.enc = func(e *encoder, p unsafe.Pointer) *refusal { e.out = append(e.out, *(*byte)(p)); return nil }
		c.dec = func(d *decoder, p unsafe.Pointer) (r *refusal) {
			set, ok := d.flag()
			if !ok {
				return cutShort
			}
			*(*bool)(p) = set
			return nil
		}
	case reflect.String:
		c.enc = func(e *encoder, p unsafe.Pointer) *refusal { return e.bytes(*(*string)(p)) }
		c.dec = func(d *decoder, p unsafe.Pointer) *refusal {
			s, ok := d.bytes()
			if !ok {
				return cutShort
			}
			*(*string)(p) = string(s)
			return nil
		}
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		c.never()
	case reflect.Interface:
		c.enc, c.dec = c.encInterface, c.decInterface
	case reflect.Pointer:
		c.pointer(b.coder(t.Elem()))
	case reflect.Slice:
		c.slice(b.coder(t.Elem()))
	case reflect.Map:
		c.mapping(b.coder(t.Key()), b.coder(t.Elem()))
	case reflect.Array:
		c.array(b.coder(t.Elem()))
	case reflect.Struct:
		c.structure(b)
	default: // numbers
		c.bytes()
	}
	return c
}

// bytes makes c one that copies.
func (c *coder) bytes() {
	c.plain, c.least = true, c.size
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal { return e.copy(p, c.size) }
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal { return d.copy(p, c.size) }
}

func (e *encoder) copy(p unsafe.Pointer, n int) *refusal {
	if r := e.room(n); r != nil {
		return r
	}
	e.out = append(e.out, unsafe.Slice((*byte)(p), n)...)
	return nil
}

func (d *decoder) copy(p unsafe.Pointer, n int) *refusal {
	b, ok := d.take(n)
	if !ok {
		return cutShort
	}
	copy(unsafe.Slice((*byte)(p), n), b)
	return nil
}

// at is the value of c's type at p. It is one that reflect lets everybody read and set.
func (c *coder) at(p unsafe.Pointer) reflect.Value { return reflect.NewAt(c.typ, p).Elem() }

// never makes c one of a type of which only nil can travel.
func (c *coder) never() {
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal {
		if !c.at(p).IsNil() {
			return refuse("a %v that is not nil", c.typ)
		}
		e.out = append(e.out, 0)
		return nil
	}
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal {
		if set, ok := d.flag(); set || !ok {
			return cutShort
		}
		return nil
	}
}

func (c *coder) pointer(to *coder) {
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal {
		at := *(*unsafe.Pointer)(p)
		if at == nil {
			e.out = append(e.out, 0)
			return nil
		}
		if r := e.enter(at, 0, c.typ); r != nil {
			return r
		}
		defer e.leave(at, 0, c.typ)
		e.out = append(e.out, 1)
		return to.enc(e, at)
	}
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal {
		set, ok := d.flag()
		if !set || !ok {
			return cutIf(!ok)
		}
		if r := d.enter(); r != nil {
			return r
		}
		defer d.leave()
		if !d.has(to.least) {
			return cutShort
		}
		at := reflect.New(to.typ).UnsafePointer()
		*(*unsafe.Pointer)(p) = at
		return to.dec(d, at)
	}
}

func cutIf(cut bool) *refusal {
	if cut {
		return cutShort
	}
	return nil
}

func (c *coder) slice(elem *coder) {
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal {
		v := c.at(p)
		if v.IsNil() {
			e.out = append(e.out, 0)
			return nil
		}
		n, at := v.Len(), v.UnsafePointer()
		e.uint(uint64(n) + 1)
		switch {
		case n == 0 || elem.least == 0:
			return nil
		case elem.plain:
			return e.copy(at, n*elem.size)
		}
		if r := e.enter(at, n, c.typ); r != nil {
			return r
		}
		defer e.leave(at, n, c.typ)
		return elem.encAll(e, at, n)
	}
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal {
		n, ok := d.count(elem.least, uint64(maxLen))
		if n < 0 || !ok {
			return cutIf(!ok)
		}
		v := reflect.MakeSlice(c.typ, n, n)
		c.at(p).Set(v)
		switch {
		case n == 0 || elem.least == 0:
			return nil
		case elem.plain:
			return d.copy(v.UnsafePointer(), n*elem.size)
		}
		if r := d.enter(); r != nil {
			return r
		}
		defer d.leave()
		return elem.decAll(d, v.UnsafePointer(), n)
	}
}

// maxLen is how many elements without bytes a slice may have.
const maxLen = int(^uint(0)>>1) - 1

func (c *coder) array(elem *coder) {
	n := c.typ.Len()
	if elem.plain && c.size > 0 {
		c.bytes()
		return
	}
	c.least = n * elem.least
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal { return elem.encAll(e, p, n) }
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal { return elem.decAll(d, p, n) }
	if c.least == 0 {
		c.enc = func(*encoder, unsafe.Pointer) *refusal { return nil }
		c.dec = func(*decoder, unsafe.Pointer) *refusal { return nil }
	}
}

// encAll encodes n values that lie one after another.
func (c *coder) encAll(e *encoder, p unsafe.Pointer, n int) *refusal {
	for i := range n {
		if r := c.enc(e, unsafe.Add(p, i*c.size)); r != nil {
			return r.in(fmt.Sprintf("[%d]", i))
		}
	}
	return nil
}

func (c *coder) decAll(d *decoder, p unsafe.Pointer, n int) *refusal {
	d.held += n * c.least
	for i := range n {
		d.held -= c.least
		if r := c.dec(d, unsafe.Add(p, i*c.size)); r != nil {
			return r.in(fmt.Sprintf("[%d]", i))
		}
	}
	return nil
}

func (c *coder) mapping(key, elem *coder) {
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal {
		v := c.at(p)
		if v.IsNil() {
			e.out = append(e.out, 0)
			return nil
		}
		e.uint(uint64(v.Len()) + 1)
		if v.Len() == 0 {
			return nil
		}
		if r := e.enter(v.UnsafePointer(), 0, c.typ); r != nil {
			return r
		}
		defer e.leave(v.UnsafePointer(), 0, c.typ)
		k, x := reflect.New(key.typ), reflect.New(elem.typ)
		for i := v.MapRange(); i.Next(); {
			k.Elem().SetIterKey(i)
			x.Elem().SetIterValue(i)
			if r := key.enc(e, k.UnsafePointer()); r != nil {
				return r.in(fmt.Sprintf("[key %v]", short(k.Elem())))
			}
			if r := elem.enc(e, x.UnsafePointer()); r != nil {
				return r.in(fmt.Sprintf("[%v]", short(k.Elem())))
			}
		}
		return nil
	}
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal {
		least := key.least + elem.least
		n, ok := d.count(least, 1)
		if n < 0 || !ok {
			return cutIf(!ok)
		}
		v := reflect.MakeMapWithSize(c.typ, min(n, 1<<12))
		c.at(p).Set(v)
		if n == 0 {
			return nil
		}
		if r := d.enter(); r != nil {
			return r
		}
		defer d.leave()
		k, x := reflect.New(key.typ), reflect.New(elem.typ)
		d.held += n * least
		for range n {
			d.held -= key.least
			k.Elem().SetZero()
			x.Elem().SetZero()
			if r := key.dec(d, k.UnsafePointer()); r != nil {
				return r
			}
			if !k.Elem().Comparable() {
				return cutShort
			}
			d.held -= elem.least
			if r := elem.dec(d, x.UnsafePointer()); r != nil {
				return r
			}
			v.SetMapIndex(k.Elem(), x.Elem())
		}
		if v.Len() != n {
			return refuse("of the %d keys of a %v some have become the same", n, c.typ)
		}
		return nil
	}
}

// short is a key as a path has it.
func short(k reflect.Value) string {
	switch k.Kind() {
	case reflect.String:
		if s := k.String(); len(s) <= 32 {
			return fmt.Sprintf("%q", s)
		}
		return fmt.Sprintf("%.32q...", k.String())
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint,
		reflect.Uint8, reflect.Uint16,
		reflect.Uint32, reflect.Uint64, reflect.Uintptr, reflect.Float32, reflect.Float64, reflect.Complex64,
		reflect.Complex128:
		return fmt.Sprint(reflect.ValueOf(k.Interface()).Convert(underlying[k.Kind()]).Interface())
	}
	return "a " + k.Type().String()
}

// field is a part of a struct.
type field struct {
	name   string
	at     uintptr
	of     *coder
	rest   int          // what the fields after it take at least
	hidden reflect.Type // of one that is not exported: it is not sent, and must be zero
}

// hides reports whether a field is not exported. What is exported in an embedded struct belongs to
// the one around it, whatever its type is called.
func hides(f reflect.StructField) bool {
	return !f.IsExported() && !(f.Anonymous && f.Type.Kind() == reflect.Struct)
}

func (c *coder) structure(b builder) {
	fields := make([]field, c.typ.NumField())
	plain, least, sent := true, 0, 0
	for i := range fields {
		f := c.typ.Field(i)
		fields[i] = field{name: f.Name, at: f.Offset}
		if hides(f) {
			fields[i].hidden, plain = f.Type, false
			continue
		}
		of := b.coder(f.Type)
		fields[i].of, plain, least, sent = of, plain && of.plain, least+of.least, sent+of.size
	}
	rest := 0
	for i := range slices.Backward(fields) {
		if f := &fields[i]; f.of != nil {
			f.rest = rest
			rest += f.of.least
		}
	}
	if plain && sent == c.size && sent > 0 { // else there are gaps
		c.bytes()
		return
	}
	pad := least == 0 && c.size > 0
	if pad {
		least = 1
	}
	c.least = least
	c.enc = func(e *encoder, p unsafe.Pointer) *refusal {
		if pad {
			e.out = append(e.out, 0)
		}
		for i := range fields {
			f := &fields[i]
			at := unsafe.Add(p, f.at)
			if f.hidden != nil {
				if !reflect.NewAt(f.hidden, at).Elem().IsZero() {
					return refuse("it is not exported, and not zero").in("." + f.name)
				}
			} else if r := f.of.enc(e, at); r != nil {
				return r.in("." + f.name)
			}
		}
		return nil
	}
	c.dec = func(d *decoder, p unsafe.Pointer) *refusal {
		if pad {
			if set, ok := d.flag(); set || !ok {
				return cutShort
			}
		}
		for i := range fields {
			f := &fields[i]
			if f.hidden != nil {
				continue
			}
			d.held += f.rest
			if r := f.of.dec(d, unsafe.Add(p, f.at)); r != nil {
				return r.in("." + f.name)
			}
			d.held -= f.rest
		}
		return nil
	}
}

// underlying has the types that named ones of a kind convert to, for print.
var underlying = map[reflect.Kind]reflect.Type{}

func init() {
	for _, t := range basics {
		if t.Kind() != reflect.Slice {
			underlying[t.Kind()] = t
		}
	}
}
