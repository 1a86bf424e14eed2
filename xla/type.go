package xla

import (
	"fmt"
	"math"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/xla/hlo"
)

// kind is an element type: PJRT's number for it, its size in bytes, and ccl's Type, or none.
type kind struct {
	t     hlo.Type
	code  int
	bytes int
	ccl   ccl.Type
}

// kinds are the element types. Their numbers are those of GPJRT_PRED and so on, which a test compares.
var kinds = []kind{
	{hlo.Bool, 1, 1, 0},
	{hlo.I8, 2, 1, ccl.TypeInt8}, {hlo.I16, 3, 2, ccl.TypeInt16}, {hlo.I32, 4, 4, ccl.TypeInt32},
	{hlo.I64, 5, 8, ccl.TypeInt64},
	{hlo.U8, 6, 1, ccl.TypeUint8}, {hlo.U16, 7, 2, ccl.TypeUint16}, {hlo.U32, 8, 4, ccl.TypeUint32},
	{hlo.U64, 9, 8, ccl.TypeUint64},
	{hlo.F16, 10, 2, ccl.TypeFloat16}, {hlo.F32, 11, 4, ccl.TypeFloat32}, {hlo.F64, 12, 8, ccl.TypeFloat64},
	{hlo.BF16, 13, 2, ccl.TypeBFloat16},
	{hlo.F8E5M2, 16, 1, ccl.TypeFloat8E5M2}, {hlo.F8E4M3, 17, 1, ccl.TypeFloat8E4M3},
}

// kindOf is the kind for which is true.
func kindOf(is func(kind) bool) (kind, bool) {
	for _, k := range kinds {
		if is(k) {
			return k, true
		}
	}
	return kind{}, false
}

// kindFor is T's.
func kindFor[T ccl.Number]() kind {
	t := ccl.TypeOf[T]()
	k, _ := kindOf(func(k kind) bool { return k.ccl == t })
	return k
}

// shape is what a buffer holds.
type shape struct {
	kind
	dims []int64
	text string // f32[2,3]
}

// mostDims is how many dimensions an array may have: pjrt.c has room for so many.
const mostDims = 16

func newShape(k kind, dims []int) (*shape, error) {
	if len(dims) > mostDims {
		return nil, fmt.Errorf("xla: %d dimensions: an array has at most %d", len(dims), mostDims)
	}
	s := &shape{kind: k}
	for _, d := range dims {
		s.dims = append(s.dims, int64(d))
	}
	s.name()
	if n, ok := s.count(); !ok || n > math.MaxInt64/int64(k.bytes) {
		return nil, fmt.Errorf("xla: %s: a dimension is negative, or the whole is too large", s.text)
	}
	return s, nil
}

func (s *shape) name() {
	s.text = string(s.t) + strings.ReplaceAll(fmt.Sprint(s.dims), " ", ",")
}

// count is the number of elements; ok is false if there is no such number.
func (s *shape) count() (n int64, ok bool) {
	n = 1
	for _, d := range s.dims {
		if d < 0 || d > 0 && n > math.MaxInt64/d {
			return 0, false
		}
		n *= d
	}
	return n, true
}

func (s *shape) elements() int { n, _ := s.count(); return int(n) }
