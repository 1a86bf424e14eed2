//go:build !amd64 || noasm || race

package ordered

import "unsafe"

// Intel says that this is a CPU of Intel's and that the assembly is in use.
const Intel = false

// Copy copies n bytes. dst and src must not overlap.
func Copy(dst, src unsafe.Pointer, n int) {
	copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(src), n))
}
