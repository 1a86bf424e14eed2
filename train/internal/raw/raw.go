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
	for _, of := range views {
		if s, ok := of(b); ok {
			return s, nil
		}
	}
	return nil, ErrDevice
}

// views has a function for each type of elements.
var views = []func(ccl.Buf) ([]byte, bool){
	view[float32], view[ccl.BFloat16], view[float64], view[ccl.Float16],
	view[int8], view[uint8], view[int16], view[uint16], view[int32], view[uint32], view[int64], view[uint64],
	view[ccl.Float8E4M3], view[ccl.Float8E5M2],
}

func view[T ccl.Number](b ccl.Buf) ([]byte, bool) {
	s, ok := ccl.SliceOf[T](b)
	if !ok {
		return nil, false
	}
	var zero T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(zero))), true
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
