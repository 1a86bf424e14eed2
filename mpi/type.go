package mpi

import (
	"fmt"

	"github.com/goccl/goccl/internal/op"
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

// What users see has the numbers of package op: each index is 0, or does not compile. That the
// names are the same a test says.
var (
	_ = [1]struct{}{}[TypeFloat64-Type(op.Float64)]
	_ = [1]struct{}{}[Max-Op(op.Max)]
)

// Size is the size of an element in bytes, 0 of no type.
func (t Type) Size() int {
	switch {
	case t >= typeEnd:
		return 0
	case t == typePlaced:
		return 16
	}
	return op.Type(t).Size()
}

// String is the type's name in Go.
func (t Type) String() string {
	switch {
	case t >= typeEnd:
		return fmt.Sprintf("Type(%d)", uint8(t))
	case t == typePlaced:
		return "placed"
	}
	return op.Type(t).Go()
}

// TypeOf is the Type of T.
func TypeOf[T Number]() Type { return Type(op.TypeOf[T, Float16, BFloat16, struct{}, struct{}]()) }

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
	switch {
	case o >= opEnd:
		return fmt.Sprintf("Op(%d)", uint8(o))
	case o == opFirst:
		return "first"
	}
	return op.Op(o).String()
}
