package reach

import (
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/reduce"
)

// Put copies src to where other ranks read it.
func Put(to unsafe.Pointer, src []byte) {
	ordered.Copy(to, call.Ptr(src), len(src))
}

// Get copies to dst what another rank has put at from.
func Get(dst []byte, from unsafe.Pointer) {
	ordered.Copy(call.Ptr(dst), from, len(dst))
}

// TakeOwn copies what a rank sends to itself, among results of so many bytes, unless it is there, where others may be
// reading it.
func (c *Reach) TakeOwn(dst, src []byte, results int) {
	switch {
	case call.Ptr(dst) == call.Ptr(src):
	case len(src) <= tuning.PreemptPiece:
		Put(call.Ptr(dst), src)
	case c.streamsOwn(len(src), results):
		reduce.Stream(call.Ptr(dst), call.Ptr(src), len(src))
	default:
		reduce.Copy(call.Ptr(dst), call.Ptr(src), len(src))
	}
}

// streamsOwn reports whether what a rank sends itself, so many bytes among so many of results, does.
func (c *Reach) streamsOwn(own, results int) bool {
	return results >= c.local.Layout.StreamFrom || own+results > c.local.Layout.StreamOwnOver
}
