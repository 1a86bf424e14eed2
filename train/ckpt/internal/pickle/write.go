package pickle

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Write appends v as a pickle of protocol 2 to b. v must be a tree: nothing in it contains itself. A State of an Object
// that is not nil is given to it by BUILD, and an Object whose class is to be made without a call has New.
func Write(b []byte, v any) ([]byte, error) {
	b, err := write(append(b, 0x80, 2), v)
	return append(b, '.'), err
}

// New is an Object's Args for which the class is made by NEWOBJ, without arguments.
var New = &Tuple{}

// Named is what a module calls by that name.
func Named(module, name string) *Symbol { return &Symbol{module, name} }

// Called is what a function returns.
func Called(module, name string, args ...any) *Object {
	return &Object{Class: Named(module, name), Args: Tuple(args)}
}

// Made is an object whose class is made without arguments, and given fields: names and values in turn.
func Made(module, class string, fields ...any) *Object {
	d := &Dict{}
	for i := 0; i+1 < len(fields); i += 2 {
		d.Set(fields[i], fields[i+1])
	}
	return &Object{Class: Named(module, class), Args: New, State: d}
}

// Ints is a tuple of numbers.
func Ints(x []int) Tuple {
	t := make(Tuple, len(x))
	for i, v := range x {
		t[i] = v
	}
	return t
}

func write(b []byte, v any) (_ []byte, err error) {
	all := func(open, end []byte, vs ...any) {
		b = append(b, open...)
		for _, v := range vs {
			if err == nil {
				b, err = write(b, v)
			}
		}
		b = append(b, end...)
	}
	switch x := v.(type) {
	case nil:
		b = append(b, 'N')
	case bool:
		b = append(b, map[bool]byte{true: 0x88, false: 0x89}[x])
	case int:
		return write(b, int64(x))
	case int64:
		if x == int64(int32(x)) {
			b = binary.LittleEndian.AppendUint32(append(b, 'J'), uint32(x))
		} else {
			b = binary.LittleEndian.AppendUint64(append(b, 0x8a, 8), uint64(x))
		}
	case string:
		if len(x) > math.MaxInt32 {
			return b, fmt.Errorf("pickle: a text of %d bytes", len(x))
		}
		b = append(binary.LittleEndian.AppendUint32(append(b, 'X'), uint32(len(x))), x...)
	case *Symbol:
		b = append(b, "c"+x.Module+"\n"+x.Name+"\n"...)
	case *Persistent:
		all(nil, []byte{'Q'}, x.ID)
	case Tuple:
		all([]byte{'('}, []byte{'t'}, x...)
	case *List:
		all([]byte("]("), []byte{'e'}, x.Items...)
	case *Dict:
		var vs []any
		for i := range x.Keys {
			vs = append(vs, x.Keys[i], x.Values[i])
		}
		all([]byte("}("), []byte{'u'}, vs...)
	case *Object:
		if x.Args == any(New) {
			all(nil, []byte{')', 0x81}, x.Class)
		} else {
			all(nil, []byte{'R'}, x.Class, x.Args)
		}
		if x.State != nil {
			all(nil, []byte{'b'}, x.State)
		}
	default:
		err = fmt.Errorf("pickle: a %T", v)
	}
	return b, err
}
