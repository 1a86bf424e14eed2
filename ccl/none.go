package ccl

import "errors"

// What a Comm answers that is none: nil, which Split gives a rank with a negative color, or Comm{}. Calls are refused,
// and Close is done; so a program needs no if around what only members of a Comm take part in but calls that count on
// their results.

// none reports whether c is no Comm.
func (c *Comm) none() bool { return c == nil || c.eng == nil }

var errNone = errors.New("the Comm is nil: Split returns none to a rank with a negative color, and NewComm and Join return none with an error")

// noComm is the name in errors of a Comm that is nil.
const noComm = "no Comm"

// refuseNone is the error of a call on no Comm.
func refuseNone(op string) *Error {
	return &Error{Code: ErrArgument, Op: op, Rank: -1, Peer: -1, Err: errNone}
}
