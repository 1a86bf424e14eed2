package ccl

import (
	"errors"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/proc"
)

// How calls are refused. A Comm that is none, nil, which Split gives a rank with a negative color,
// or Comm{}, refuses all calls, and Close of it is done; so a program needs no if around what only
// members of a Comm take part in, except for calls that count on their results.

var errNone = errors.New("the Comm is nil: Split returns none to a rank with a negative color, and NewComm and Join return none with an error")

// noComm is the name in errors of a Comm that is nil.
const noComm = "no Comm"

// refuseNone is the error of a call on no Comm.
func refuseNone(op string) *Error {
	return &Error{Code: ErrArgument, Op: op, Rank: -1, Peer: -1, Err: errNone}
}

var errForked = errors.New("this process is a forked child of a rank; only the parent may use the Comm: start a program here (exec) instead")

// whyShut is the cause of an ErrClosed, where it is not Close.
func whyShut() error {
	if proc.Forked() {
		return errForked
	}
	return nil
}

// unsupported marks an argument error that is about the backend.
type unsupported struct{ error }

// codeOf is the Code of err: ErrUnsupported if it is so marked.
func codeOf(err error, otherwise Code) Code {
	var u unsupported
	if errors.As(err, &u) {
		return ErrUnsupported
	}
	return otherwise
}

// waitError is why a Wait has ended with its context, by err. c is whose the work is, nil for a function of Do.
func waitError(err error, c *Comm) *Error {
	e := &Error{Code: Code(call.CtxCode(err)), Op: "Wait", Rank: -1, Peer: -1, Err: err}
	if c == nil {
		return e
	}
	e.Rank = c.Rank()
	return c.named(e)
}
