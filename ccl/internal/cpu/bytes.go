package cpu

import "unsafe"

// bytesOf is the memory of s.
func bytesOf[T int64 | uint64](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), 8*len(s))
}
