package ccl

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Number is an element type that every engine can move. Comm.Supports says which types an engine
// can reduce.
type Number interface {
	~int8 | uint8 | ~int16 | uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~int | ~uint |
		~float32 | ~float64 | Float16 | BFloat16 | Float8E4M3 | Float8E5M2
}

// Element is a type of elements: a number, a bool or a complex number. Every engine moves them all.
// The CPU engine reduces bool by Min and BAnd (and), Max and BOr (or) and BXor, complex numbers by
// Sum and Avg.
type Element interface {
	Number | ~bool | ~complex64 | ~complex128
}

// Float16 is an IEEE 754 binary16 number, by its bits.
type Float16 uint16

// BFloat16 is the upper half of an IEEE 754 binary32 number, by its bits.
type BFloat16 uint16

// Float8E4M3 is an 8-bit float of 4 exponent and 3 mantissa bits (OCP OFP8), by its bits: up to 448, without
// infinities. Every engine moves it; the CPU engine reduces it, and so do libraries that can.
type Float8E4M3 uint8

// Float8E5M2 is an 8-bit float of 5 exponent and 2 mantissa bits (OCP OFP8), by its bits: up to 57,344, with
// infinities. Every engine moves it; the CPU engine reduces it, and so do libraries that can.
type Float8E5M2 uint8

// Float32 returns f's value, exactly.
func (f Float16) Float32() float32 { return reduce.F16ToF32(uint16(f)) }

// Float32 returns f's value, exactly.
func (f BFloat16) Float32() float32 { return reduce.BF16ToF32(uint16(f)) }

// Float32 returns f's value, exactly.
func (f Float8E4M3) Float32() float32 { return reduce.E4M3ToF32(uint8(f)) }

// Float32 returns f's value, exactly.
func (f Float8E5M2) Float32() float32 { return reduce.E5M2ToF32(uint8(f)) }

// ToFloat16 rounds x to the nearest Float16, ties to even.
func ToFloat16(x float32) Float16 { return Float16(reduce.F32ToF16(x)) }

// ToBFloat16 rounds x to the nearest BFloat16, ties to even.
func ToBFloat16(x float32) BFloat16 { return BFloat16(reduce.F32ToBF16(x)) }

// ToFloat8E4M3 rounds x to the nearest Float8E4M3, ties to even. What is beyond 448, an infinity too,
// becomes 448, with its sign; a NaN stays one.
func ToFloat8E4M3(x float32) Float8E4M3 { return Float8E4M3(reduce.F32ToE4M3(x)) }

// ToFloat8E5M2 rounds x to the nearest Float8E5M2, ties to even. What is beyond 57,344, an infinity too,
// becomes 57,344, with its sign; a NaN stays one.
func ToFloat8E5M2(x float32) Float8E5M2 { return Float8E5M2(reduce.F32ToE5M2(x)) }

// Type is an element type at run time.
type Type uint8

// The element types. TypeNone is that of calls without data, such as [Barrier].
const (
	TypeNone Type = iota
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
	TypeFloat8E4M3
	TypeFloat8E5M2
	TypeBool // a byte that is 0 or 1
	TypeComplex64
	TypeComplex128
	typeEnd
)

// What users see has the numbers of package op: each index is 0, or does not compile. That the
// names are the same a test says.
var (
	_ = [1]struct{}{}[Type(op.Types)-typeEnd]
	_ = [1]struct{}{}[Op(op.Ops)-opEnd]
	_ = [1]struct{}{}[Kind(op.Kinds)-kindEnd]
	_ = [1]struct{}{}[Code(call.Closed)-ErrClosed]
)

// Size returns the size of an element in bytes.
func (t Type) Size() int { return op.Type(t).Size() }

// String returns the type's name in nccl-tests: float, half, bfloat16, f8e4m3, int8, ...
func (t Type) String() string { return op.Type(t).String() }

// TypeOf returns the Type of T.
func TypeOf[T Element]() Type { return Type(op.TypeOf[T, Float16, BFloat16, Float8E4M3, Float8E5M2]()) }

// Op is an operator that combines elements. docs/types.md says what each does on each type.
type Op uint8

// The operators.
const (
	Sum  Op = iota // the sum
	Prod           // the product
	Min            // the least element; NaN if any element is NaN
	Max            // the greatest element; NaN if any element is NaN
	Avg            // the sum, divided by the number of ranks
	BAnd           // the bits that all have: of integers, and of bool
	BOr            // the bits that any has
	BXor           // the bits that an odd number of ranks has
	opEnd
)

// String returns the operator's name: sum, prod, min, max or avg, as in nccl-tests, band, bor or
// bxor, and mulsum for an operator that [Comm.Scaled] made.
func (o Op) String() string { return op.Op(o).String() }

// Kind names a collective.
type Kind uint8

// The kinds of calls.
const (
	_ Kind = iota
	KindAllReduce
	KindReduce
	KindReduceScatter
	KindReduceScatterV
	KindBroadcast
	KindAllGather
	KindAllGatherV
	KindGather
	KindGatherV
	KindScatter
	KindScatterV
	KindAllToAll
	KindAllToAllV
	KindSend
	KindRecv
	KindSendRecv
	KindBarrier
	KindSplit
	KindGroup
	KindWindow
	KindGraph // a launch of a graph that was captured from calls
	KindMonitoredBarrier
	KindReplace // what seats spares, and Shrink where there are some
	kindEnd
)

// String returns the name of the function that makes such calls.
func (k Kind) String() string { return op.Kind(k).String() }

// State is how far a call has come.
type State uint8

// The states of a call.
const (
	Issued   State = iota // queued behind others
	Running               // under way
	Complete              // done, results right
	Failed                // ended by the Comm's failure
	Rejected              // refused for its arguments; it took its place in the order
)

// String names the state.
func (s State) String() string {
	return [...]string{"issued", "running", "complete", "failed", "rejected"}[min(int(s), 4)]
}

// Check says how thoroughly mismatched calls are looked for.
type Check uint8

// The levels of checking.
const (
	// CheckAsync compares what every message carries anyway. It costs nothing.
	CheckAsync Check = iota
	// CheckStrict adds that no call returns before all ranks have made it.
	CheckStrict
	// CheckOff compares nothing.
	CheckOff
)

// String returns the name of the level: async, strict or off.
func (k Check) String() string {
	return [...]string{"async", "strict", "off"}[min(int(k), 2)]
}

// bytesOf is the memory of s.
func bytesOf[T Element](s []T) []byte {
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(z)))
}
