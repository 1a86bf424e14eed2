package ccl

import (
	"cmp"
	"fmt"

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

// supports is why c cannot make such calls on host memory, or on that of its device, or nil.
func supports(c *Comm, k op.Kind, t op.Type, o op.Op, host bool) error {
	if o.Scales() && k.Reduces() {
		if _, err := c.calling.factors.of(t, o); err != nil {
			return err
		}
	}
	switch {
	case !k.Valid():
		return fmt.Errorf("there is no kind %d", k)
	case k.Dataless():
		t, o = 0, op.Sum
	case !t.Valid():
		return fmt.Errorf("there is no type %d", t)
	case !k.Reduces():
		o = op.Sum
	case !o.Valid():
		return fmt.Errorf("there is no operator %d", o)
	}
	e := c.onHost
	if !host {
		e = c.lib.end
	}
	if err := e.Supports(k, t, o, host); err != nil {
		return unsupported{err}
	}
	return nil
}
