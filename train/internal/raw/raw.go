// Package raw sees the memory of views on the host as bytes, whatever their types.
package raw

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// ErrDevice is about a Buf whose memory the host cannot read.
var ErrDevice = errors.New("a Buf is no view of host memory")

// Bytes returns the memory of b.
func Bytes(b ccl.Buf) ([]byte, error) {
	if k := kindOf(b.Type()); k.bytes != nil {
		if s, ok := k.bytes(b); ok {
			return s, nil
		}
	}
	return nil, ErrDevice
}

// Slice returns the memory of b as a slice of its own type, such as []float32; ok is false if it is
// no view of host memory.
func Slice(b ccl.Buf) (s any, ok bool) {
	if k := kindOf(b.Type()); k.slice != nil {
		return k.slice(b)
	}
	return nil, false
}

// Make returns a slice of n elements of a type; nil if there is no such type.
func Make(t ccl.Type, n int) any {
	if k := kindOf(t); k.make != nil {
		return k.make(n)
	}
	return nil
}

// kind is what is done with elements of one type.
type kind struct {
	bytes func(ccl.Buf) ([]byte, bool)
	slice func(ccl.Buf) (any, bool)
	make  func(n int) any
}

func of[T ccl.Number]() kind {
	return kind{
		bytes: func(b ccl.Buf) ([]byte, bool) {
			s, ok := ccl.SliceOf[T](b)
			return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*b.Type().Size()), ok
		},
		slice: func(b ccl.Buf) (any, bool) { s, ok := ccl.SliceOf[T](b); return s, ok },
		make:  func(n int) any { return make([]T, n) },
	}
}

var kinds = [...]kind{
	ccl.TypeInt8: of[int8](), ccl.TypeUint8: of[uint8](), ccl.TypeInt16: of[int16](), ccl.TypeUint16: of[uint16](),
	ccl.TypeInt32: of[int32](), ccl.TypeUint32: of[uint32](), ccl.TypeInt64: of[int64](), ccl.TypeUint64: of[uint64](),
	ccl.TypeFloat16: of[ccl.Float16](), ccl.TypeBFloat16: of[ccl.BFloat16](), ccl.TypeFloat32: of[float32](),
	ccl.TypeFloat64: of[float64](), ccl.TypeFloat8E4M3: of[ccl.Float8E4M3](), ccl.TypeFloat8E5M2: of[ccl.Float8E5M2](),
}

func kindOf(t ccl.Type) kind {
	if int(t) >= len(kinds) {
		return kind{}
	}
	return kinds[t]
}

// Sized returns a slice of n bytes, which is room where that has as many.
func Sized(room []byte, n int) []byte {
	if cap(room) < n {
		return make([]byte, n)
	}
	return room[:n]
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli) // which processors compute themselves

// Hash hashes the bits of bufs, so that ranks and times can be compared.
func Hash(bufs []ccl.Buf) (int64, error) {
	h := uint32(0)
	for _, b := range bufs {
		s, err := Bytes(b)
		if err != nil {
			return 0, err
		}
		h = crc32.Update(h, castagnoli, s)
		h = crc32.Update(h, castagnoli, binary.LittleEndian.AppendUint64(nil, uint64(len(s))))
	}
	return int64(h), nil
}

// HashInts hashes a list.
func HashInts(list []int) int64 {
	h, _ := Hash([]ccl.Buf{ccl.BufOf(list)})
	return h
}
