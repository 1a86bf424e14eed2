package mpi

import (
	"fmt"
	"math/bits"
	"reflect"
)

// Number is an element type.
type Number interface {
	~int8 | ~uint8 | ~int16 | uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint |
		~float32 | ~float64 | Float16 | BFloat16
}

// The bits of 16-bit floats, which are reduced in float32 and rounded to nearest even.
type (
	Float16  uint16 // IEEE 754 binary16
	BFloat16 uint16 // the upper half of a float32
)

// Type is an element type as a value.
type Type uint8

// The element types.
const (
	_ Type = iota
	TypeInt8
	TypeUint8
	TypeInt16
	TypeUint16
	TypeInt32
	TypeUint32
	TypeInt64
	TypeUint64
	TypeFloat16
	TypeBFloat16
	TypeFloat32
	TypeFloat64
	typePlaced // what MaxLoc reduces
	typeEnd
)

var types = [typeEnd]struct {
	name string
	size int
}{
	{"none", 0}, {"int8", 1}, {"uint8", 1}, {"int16", 2}, {"uint16", 2}, {"int32", 4}, {"uint32", 4},
	{"int64", 8}, {"uint64", 8}, {"float16", 2}, {"bfloat16", 2}, {"float32", 4}, {"float64", 8}, {"placed", 16},
}

// Size is the size of an element in bytes, 0 of no type.
func (t Type) Size() int {
	if t >= typeEnd {
		return 0
	}
	return types[t].size
}

// String is the type's name in Go.
func (t Type) String() string {
	if t >= typeEnd {
		return fmt.Sprintf("Type(%d)", uint8(t))
	}
	return types[t].name
}

// TypeOf is the Type of T.
func TypeOf[T Number]() Type {
	var z T
	switch any(z).(type) {
	case int8:
		return TypeInt8
	case uint8:
		return TypeUint8
	case int16:
		return TypeInt16
	case uint16:
		return TypeUint16
	case int32:
		return TypeInt32
	case uint32:
		return TypeUint32
	case int64:
		return TypeInt64
	case uint64:
		return TypeUint64
	case Float16:
		return TypeFloat16
	case BFloat16:
		return TypeBFloat16
	case float32:
		return TypeFloat32
	case float64:
		return TypeFloat64
	}
	return typeOfKind[reflect.TypeFor[T]().Kind()]
}

// typeOfKind serves int, uint and the named types whose underlying type is a basic one.
var typeOfKind = [...]Type{
	reflect.Int8: TypeInt8, reflect.Int16: TypeInt16, reflect.Int32: TypeInt32, reflect.Int64: TypeInt64,
	reflect.Uint8: TypeUint8, reflect.Uint32: TypeUint32, reflect.Uint64: TypeUint64,
	reflect.Int: TypeInt64 - Type(64-bits.UintSize)/16, reflect.Uint: TypeUint64 - Type(64-bits.UintSize)/16,
	reflect.Float32: TypeFloat32, reflect.Float64: TypeFloat64,
}

// Op is how elements are reduced.
type Op uint8

// The operators.
const (
	Sum Op = iota
	Prod
	Min
	Max
	opFirst // of typePlaced: the greatest, and of equal ones the one with the lowest place
	opEnd
)

// String names the operator.
func (o Op) String() string {
	if o >= opEnd {
		return fmt.Sprintf("Op(%d)", uint8(o))
	}
	return [...]string{"sum", "prod", "min", "max", "first"}[o]
}
