package ccl

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// What a Comm answers that is none: nil, which Split gives a rank with a negative color, or Comm{}. Calls are refused,
// and Close is done; so a program needs no if around what only members of a Comm take part in but calls that count on
// their results.

// isNil reports whether c is no Comm.
func (c *Comm) isNil() bool { return c == nil || c.eng == nil }

var errNone = errors.New("the Comm is nil: Split returns none to a rank with a negative color, and NewComm and Join return none with an error")

// noComm is the name in errors of a Comm that is nil.
const noComm = "no Comm"

// refuseNone is the error of a call on no Comm.
func refuseNone(op string) *Error {
	return &Error{Code: ErrArgument, Op: op, Rank: -1, Peer: -1, Err: errNone}
}

// named is an operation that is no call in the order of all.
type named string

// String returns its name.
func (n named) String() string { return string(n) }

// callable is nil, or why nothing can be asked of c now: what every call looks at first, and whatever else c is asked for.
func callable(ctx context.Context, c *Comm, op fmt.Stringer) error {
	if ctx == nil {
		return noContext(ctx, c, op.String())
	}
	if c.isNil() {
		return refuseNone(op.String())
	}
	c.calling.count++
	switch {
	case c.life.shut():
		return c.refuse(op.String(), ErrClosed, whyShut())
	case c.life.busy.Load() && c.usedElsewhere():
		return c.refuse(op.String(), ErrArgument, inUse(c))
	}
	return nil
}

// shut reports whether the Comm takes no calls: it is closed, or this process is a forked child. See whyShut.
func (l *life) shut() bool { return l.closed.Load() || *l.parent == 0 }

var errForked = errors.New("this process is a forked child of a rank; only the parent may use the Comm: start a program here (exec) instead")

// whyShut is the cause of an ErrClosed, where it is not Close.
func whyShut() error {
	if proc.Forked() {
		return errForked
	}
	return nil
}

// refuse is the error of a call that had no effect.
func (c *Comm) refuse(op string, code Code, err error) *Error {
	return c.named(&Error{Code: code, Op: op, Rank: c.Rank(), Peer: -1, Err: err})
}
