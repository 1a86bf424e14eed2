package op

import (
	"math/bits"
	"reflect"
)

// Type is an element type.
type Type uint8

// The element types. None is that of calls without data.
const (
	None Type = iota
	Int8
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64
	Float16
	BFloat16
	Float32
	Float64
	Float8E4M3
	Float8E5M2
	Bool       // a byte that is 0 or 1
	Complex64  // two float32: the real part, the imaginary part
	Complex128 // two float64
	Types      // what is no type begins here
)

// types has the bytes of an element, and the names of each type: in nccl-tests, and in Go.
var types = [Types]struct {
	size     uint8
	name, in string
}{
	{0, "none", "none"}, {1, "int8", "int8"}, {1, "uint8", "uint8"}, {2, "int16", "int16"}, {2, "uint16", "uint16"},
	{4, "int32", "int32"}, {4, "uint32", "uint32"}, {8, "int64", "int64"}, {8, "uint64", "uint64"},
	{2, "half", "float16"}, {2, "bfloat16", "bfloat16"}, {4, "float", "float32"}, {8, "double", "float64"},
	{1, "f8e4m3", "float8e4m3"}, {1, "f8e5m2", "float8e5m2"},
	{1, "bool", "bool"}, {8, "complex64", "complex64"}, {16, "complex128", "complex128"},
}

// Size returns the size of an element in bytes, 0 for no type.
func (t Type) Size() int { return int(types[t.known()].size) }

// String returns the type's name in nccl-tests: float, half, bfloat16, f8e4m3, int8, ...
func (t Type) String() string { return types[t.known()].name }

// Go returns the type's name in Go: float32, float16, bfloat16, ...
func (t Type) Go() string { return types[t.known()].in }

// known is t, or None if there is no such type.
func (t Type) known() Type {
	if t >= Types {
		return None
	}
	return t
}

// Valid reports whether t is the type of an element.
func (t Type) Valid() bool { return t != None && t < Types }

// Float8 reports whether t is an 8-bit float, which only some libraries reduce.
func (t Type) Float8() bool { return t == Float8E4M3 || t == Float8E5M2 }

// Integer reports whether t is an integer, with a sign or without.
func (t Type) Integer() bool { return t >= Int8 && t <= Uint64 }

// Complex reports whether t is a complex number, which is two floats.
func (t Type) Complex() bool { return t == Complex64 || t == Complex128 }

// Half reports whether t is a 16-bit float, of which an average or a scaled sum is computed in
// float32.
func (t Type) Half() bool { return t == Float16 || t == BFloat16 }

// TypeOf returns the Type of T. The others are a package's own types for floats that Go lacks: 16
// bits, 16 bits of bfloat16, and the two of 8 bits; a package without one gives what T cannot be.
func TypeOf[T, F16, BF16, E4M3, E5M2 any]() Type {
	var z T
	if _, ok := any(z).(float32); ok { // first: the switch jumps by a table, which takes 5 ns of a small call
		return Float32
	}
	switch any(z).(type) {
	case float64:
		return Float64
	case int8:
		return Int8
	case uint8:
		return Uint8
	case int16:
		return Int16
	case uint16:
		return Uint16
	case int32:
		return Int32
	case uint32:
		return Uint32
	case int64:
		return Int64
	case uint64:
		return Uint64
	case bool:
		return Bool
	case F16:
		return Float16
	case BF16:
		return BFloat16
	case E4M3:
		return Float8E4M3
	case E5M2:
		return Float8E5M2
	}
	return ofKind[reflect.TypeFor[T]().Kind()]
}

// word is how far the types of a machine's words are before those of 64 bits.
const word = Type(64-bits.UintSize) / 16

// ofKind serves int, uint and the named types whose underlying type is a basic one.
var ofKind = [...]Type{
	reflect.Int8: Int8, reflect.Int16: Int16, reflect.Int32: Int32, reflect.Int64: Int64, reflect.Int: Int64 - word,
	reflect.Uint8: Uint8, reflect.Uint32: Uint32, reflect.Uint64: Uint64, reflect.Uint: Uint64 - word,
	reflect.Float32: Float32, reflect.Float64: Float64, reflect.Bool: Bool, reflect.Complex64: Complex64,
	reflect.Complex128: Complex128,
}
