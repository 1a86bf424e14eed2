//go:build !amd64 || noasm || race

package ordered

import "unsafe"

// Copy copies n bytes. dst and src must not overlap.
func Copy(dst, src unsafe.Pointer, n int) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
