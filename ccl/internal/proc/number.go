package proc

import (
	"crypto/rand"
	"encoding/binary"
)

// Number returns a number that no other call has returned, in any process. Those of math/rand are not like that: Go
// seeds it with what the kernel gave this process at exec, and processes share that which were forked from one before
// they loaded libgoccl.
func Number() uint64 {
	var b [8]byte
	rand.Read(b[:])
	return binary.NativeEndian.Uint64(b[:])
}
