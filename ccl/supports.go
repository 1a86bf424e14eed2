package ccl

import (
	"cmp"

	"github.com/goccl/goccl/internal/op"
)

// SupportsInPlace returns nil if dst and src of such a call on c may be one memory, and otherwise
// ErrUnsupported with the reason. Nothing is sent, and all ranks get the same answer. It concerns
// memory of a device: NCCL and RCCL copy what AllToAll, AllToAllV and SendRecv send in place, for
// which the device runtime of each rank must have MallocAsync (CUDA 11.2, ROCm 5.2).
func SupportsInPlace(c *Comm, k Kind) error {
	if c.isNil() {
		return refuseNone(k.String())
	}
	if !c.lib.onHost(c.opt.Staged) && op.Kind(k).Exchanges() {
		if err := c.lib.end.InPlace(op.Kind(k)); err != nil {
			return c.refuse(k.String(), ErrUnsupported, err)
		}
	}
	return nil
}

// SupportsHints returns nil if c's library takes all of the hints h, for Comms that SplitWith makes
// of c, and otherwise ErrUnsupported with the reason, or ErrArgument where no library takes the
// values. All ranks get the same answer, since they have the same version of the library.
func SupportsHints(c *Comm, h Hints) error {
	const op = "SupportsHints"
	if c.isNil() {
		return refuseNone(op)
	}
	if err := cmp.Or(h.check(), h.takes(c.Backend(), c.lib.loaded)); err != nil {
		return c.refuse(op, codeOf(err, ErrArgument), err)
	}
	return nil
}
