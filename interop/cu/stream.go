//go:build cu

package cu

import (
	"sync/atomic"
	"unsafe"

	gorgonia "gorgonia.org/cu"
)

// Stream is a stream of gorgonia.org/cu as a ccl.Stream.
type Stream struct {
	s      gorgonia.Stream
	closed atomic.Bool
}

// NewStream wraps s, which stays the caller's: destroy it by Close of what NewStream returns, or after that.
func NewStream(s gorgonia.Stream) *Stream { return &Stream{s: s} }

// Handle is the CUstream, which is the runtime's cudaStream_t as well; ok is false once s is closed.
func (s *Stream) Handle() (h uintptr, ok bool) {
	if s == nil || s.closed.Load() {
		return 0, false
	}
	return uintptr(unsafe.Pointer(s.s.C())), true
}

// Close destroys the stream; what was issued still runs. To close it twice is an error.
func (s *Stream) Close() error {
	if s == nil || !s.closed.CompareAndSwap(false, true) {
		return errClosed
	}
	return s.s.Destroy()
}
