// Package pickle reads Python's pickles without executing anything: what a pickle would call or
// build stays a description of it. It reads what protocols 2 to 5 write.
package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// A value is nil, a bool, an int64, a float64, a string, a []byte, or one of the types below. A
// value may contain itself.
type (
	// Tuple is a tuple.
	Tuple []any
	// List is a list or a set.
	List struct{ Items []any }
	// Dict is a dictionary, in its order.
	Dict struct{ Keys, Values []any }
	// Symbol is what a module calls by a name, such as a class or a function.
	Symbol struct{ Module, Name string }
	// Object is what a call of Class with Args would return, then given State and Items.
	Object struct {
		Class       any
		Args, State any
		Items       List
		Dict        Dict
	}
	// Persistent is what the program that reads the pickle is to find by an ID.
	Persistent struct{ ID any }
)

// Is reports whether v is what the module calls by the name.
func Is(v any, module, name string) bool {
	s, is := v.(*Symbol)
	return is && s.Module == module && s.Name == name
}

// Get is the value of a key, or nil; of a nil Dict, too.
func (d *Dict) Get(key string) any {
	if d == nil {
		return nil
	}
	for i, k := range d.Keys {
		if k == key {
			return d.Values[i]
		}
	}
	return nil
}

// Set adds a key and its value at the end.
func (d *Dict) Set(key, value any) { d.Keys, d.Values = append(d.Keys, key), append(d.Values, value) }

var errEnd = errors.New("it ends in the middle")

// mark is what MARK pushes.
type mark struct{}

type reader struct {
	b     []byte
	at    int
	stack []any
	memo  map[uint32]any
}

// Read reads the pickle that b begins with. What it returns takes up to 100 bytes for each of b, as
// empty dictionaries do.
func Read(b []byte) (v any, err error) {
	r := &reader{b: b, memo: map[uint32]any{}}
	for {
		at := r.at
		op, err := r.take(1)
		if err == nil && op[0] == '.' {
			if v, err = r.pop(); err == nil {
				return v, nil
			}
		} else if err == nil {
			err = r.do(op[0])
		}
		if err != nil {
			return nil, fmt.Errorf("pickle, byte %d: %w", at, err)
		}
	}
}

// take are the next n bytes.
func (r *reader) take(n uint64) ([]byte, error) {
	if n > uint64(len(r.b)-r.at) {
		return nil, errEnd
	}
	b := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return b, nil
}

// number is an unsigned number of n bytes.
func (r *reader) number(n int) (uint64, error) {
	b, err := r.take(uint64(n))
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(append(append(make([]byte, 0, 8), b...), make([]byte, 8-n)...)), nil
}

// line is text up to a new line.
func (r *reader) line() (string, error) {
	n := strings.IndexByte(string(r.b[r.at:min(len(r.b), r.at+1024)]), '\n')
	if n < 0 {
		return "", errors.New("a name without an end")
	}
	b, err := r.take(uint64(n) + 1)
	return string(b[:n]), err
}

func (r *reader) push(v any) error { r.stack = append(r.stack, v); return nil }

func (r *reader) pop() (any, error) {
	if len(r.stack) == 0 {
		return nil, errors.New("nothing is on the stack")
	}
	v := r.stack[len(r.stack)-1]
	r.stack = r.stack[:len(r.stack)-1]
	if _, is := v.(mark); is {
		return nil, errors.New("a mark in the place of a value")
	}
	return v, nil
}

// popN are the last n values.
func (r *reader) popN(n int) (Tuple, error) {
	out := make(Tuple, n)
	for i := range n {
		v, err := r.pop()
		if err != nil {
			return nil, err
		}
		out[n-1-i] = v
	}
	return out, nil
}

// marked are the values since the last mark.
func (r *reader) marked() (Tuple, error) {
	for i := len(r.stack) - 1; i >= 0; i-- {
		if _, is := r.stack[i].(mark); is {
			vs := append(Tuple{}, r.stack[i+1:]...)
			r.stack = r.stack[:i]
			return vs, nil
		}
	}
	return nil, errors.New("no mark is on the stack")
}

// sized are opcodes that a length of so many bytes follows, and then text or bytes.
var sized = map[byte]int{'X': 4, 0x8c: 1, 0x8d: 8, 'C': 1, 'B': 4, 0x8e: 8, 0x96: 8, 'U': 1, 'T': 4}

// plain are opcodes that push a value, or pop so many for a tuple.
var plain = map[byte]func(r *reader) (any, error){
	'(':  func(*reader) (any, error) { return mark{}, nil },
	'N':  func(*reader) (any, error) { return nil, nil },
	0x88: func(*reader) (any, error) { return true, nil },
	0x89: func(*reader) (any, error) { return false, nil },
	')':  func(*reader) (any, error) { return Tuple{}, nil },
	']':  func(*reader) (any, error) { return &List{}, nil },
	'}':  func(*reader) (any, error) { return &Dict{}, nil },
	0x8f: func(*reader) (any, error) { return &List{}, nil },
	0x85: func(r *reader) (any, error) { return r.popN(1) },
	0x86: func(r *reader) (any, error) { return r.popN(2) },
	0x87: func(r *reader) (any, error) { return r.popN(3) },
	't':  func(r *reader) (any, error) { return r.marked() },
	'l':  func(r *reader) (any, error) { vs, err := r.marked(); return &List{vs}, err },
	0x91: func(r *reader) (any, error) { vs, err := r.marked(); return &List{vs}, err },
	'J':  func(r *reader) (any, error) { n, err := r.number(4); return int64(int32(n)), err },
	'K':  func(r *reader) (any, error) { n, err := r.number(1); return int64(n), err },
	'M':  func(r *reader) (any, error) { n, err := r.number(2); return int64(n), err },
	'Q':  func(r *reader) (any, error) { v, err := r.pop(); return &Persistent{v}, err },
	'R':  (*reader).call,
	0x81: (*reader).call,
	'G': func(r *reader) (any, error) {
		b, err := r.take(8)
		if err != nil {
			return nil, err
		}
		return math.Float64frombits(binary.BigEndian.Uint64(b)), nil
	},
	0x8a: func(r *reader) (any, error) {
		n, err := r.number(1)
		if err == nil && n > 8 {
			err = fmt.Errorf("an int of %d bytes", n)
		}
		if err != nil || n == 0 {
			return int64(0), err
		}
		v, err := r.number(int(n))
		shift := 64 - 8*n
		return int64(v<<shift) >> shift, err
	},
	'c': func(r *reader) (any, error) {
		module, err := r.line()
		if err != nil {
			return nil, err
		}
		name, err := r.line()
		return &Symbol{module, name}, err
	},
	0x93: func(r *reader) (any, error) {
		vs, err := r.popN(2)
		if err != nil {
			return nil, err
		}
		module, ok := vs[0].(string)
		name, also := vs[1].(string)
		if !ok || !also {
			return nil, errors.New("a symbol whose name is no text")
		}
		return &Symbol{module, name}, nil
	},
}

func (r *reader) call() (any, error) {
	vs, err := r.popN(2)
	if err != nil {
		return nil, err
	}
	return &Object{Class: vs[0], Args: vs[1]}, nil
}

func (r *reader) do(op byte) error {
	if f := plain[op]; f != nil {
		v, err := f(r)
		if err != nil {
			return err
		}
		return r.push(v)
	}
	if n := sized[op]; n > 0 {
		k, err := r.number(n)
		if err != nil {
			return err
		}
		b, err := r.take(k)
		switch {
		case err != nil:
			return err
		case strings.IndexByte("CB\x8e\x96", op) >= 0:
			return r.push(append([]byte{}, b...))
		case !utf8.Valid(b):
			return errors.New("a text that is not UTF-8")
		}
		return r.push(string(b))
	}
	switch op {
	case 0x80: // PROTO
		v, err := r.number(1)
		if err == nil && v > 5 {
			err = fmt.Errorf("protocol %d, and 5 is the last that is known", v)
		}
		return err
	case 0x95: // FRAME
		_, err := r.take(8)
		return err
	case '0':
		_, err := r.pop()
		return err
	case '1':
		_, err := r.marked()
		return err
	case 'b', 'a', 's', 'e', 'u', 0x90:
		return r.fill(op)
	case 'q', 'r', 0x94, 'h', 'j':
		return r.remember(op)
	case 0x92: // NEWOBJ_EX
		vs, err := r.popN(3)
		if err != nil {
			return err
		}
		return r.push(&Object{Class: vs[0], Args: vs[1], State: vs[2]})
	}
	return fmt.Errorf("opcode %#x, which protocols 2 to 5 do not write, or this package does not know", op)
}

// remember is what has to do with the memo.
func (r *reader) remember(op byte) error {
	n := uint64(len(r.memo))
	if op != 0x94 {
		var err error
		if n, err = r.number(map[byte]int{'q': 1, 'h': 1, 'r': 4, 'j': 4}[op]); err != nil {
			return err
		}
	}
	if op == 'h' || op == 'j' {
		v, ok := r.memo[uint32(n)]
		if !ok {
			return fmt.Errorf("it asks for %d, which it has not kept", n)
		}
		return r.push(v)
	}
	v, err := r.pop()
	if err != nil {
		return err
	}
	r.memo[uint32(n)] = v
	return r.push(v)
}

// fill gives the value below what it pops an item, several of them, or a state.
func (r *reader) fill(op byte) error {
	n := map[byte]int{'b': 1, 'a': 1, 's': 2}[op]
	vs, err := r.popN(n)
	if n == 0 {
		vs, err = r.marked()
	}
	if err != nil {
		return err
	}
	to, err := r.pop()
	if err != nil {
		return err
	}
	list, dict := (*List)(nil), (*Dict)(nil)
	switch x := to.(type) {
	case *List:
		list = x
	case *Dict:
		dict = x
	case *Object:
		list, dict = &x.Items, &x.Dict
		if op == 'b' {
			x.State = vs[0]
			return r.push(to)
		}
	}
	pairs := op == 's' || op == 'u'
	switch {
	case pairs && dict != nil && len(vs)%2 == 0:
		for i := 0; i < len(vs); i += 2 {
			dict.Set(vs[i], vs[i+1])
		}
	case !pairs && op != 'b' && list != nil:
		list.Items = append(list.Items, vs...)
	default:
		return fmt.Errorf("opcode %q for a %T", op, to)
	}
	return r.push(to)
}
