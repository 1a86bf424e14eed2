package reach

import (
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// TakeOwn copies what a rank sends to itself, among results of so many bytes, unless it is there, where others may be
// reading it.
func (c *Reach) TakeOwn(dst, src []byte, results int) {
	switch {
	case op.Ptr(dst) == op.Ptr(src):
	case len(src) <= tuning.PreemptPiece:
		ordered.Put(op.Ptr(dst), src)
	case c.streamsOwn(len(src), results):
		reduce.Stream(op.Ptr(dst), op.Ptr(src), len(src))
	default:
		reduce.Copy(op.Ptr(dst), op.Ptr(src), len(src))
	}
}

// streamsOwn reports whether what a rank sends itself, so many bytes among so many of results, does.
func (c *Reach) streamsOwn(own, results int) bool {
	return results >= c.local.Layout.StreamFrom || own+results > c.local.Layout.StreamOwnOver
}
