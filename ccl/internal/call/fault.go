package call

import (
	"context"
	"errors"
	"fmt"
)

// Code classifies a Fault. The values are those of ccl.Code.
type Code uint8

// What can go wrong.
const (
	_ Code = iota
	Argument
	Unsupported
	Mismatch
	RankLost
	Timeout
	Canceled
	Aborted
	Unauthorized
	Version
	Backend
	Closed
)

// Fault is why a Comm failed, or why it could not be made.
type Fault struct {
	Code    Code
	Peer    int // the rank of the Comm at fault, or -1
	Missing []int
	Own     bool    // this rank gave up: to the others it is the one at fault
	Certain bool    // for RankLost: Peer's process has ended; else it is only silent, or out of reach
	Mine    *Record // for Mismatch: this rank's call, if not the one that failed
	Theirs  *Record // and Peer's
	Err     error

	// In a mismatch between two other ranks: the one that is not Peer, and its call.
	OtherPeer int
	Other     *Record
}

// Error is the cause, or the code and the rank.
func (f *Fault) Error() string {
	if f.Err != nil {
		return f.Err.Error()
	}
	return fmt.Sprintf("code %d, rank %d", f.Code, f.Peer)
}

// Said tells what happened, for a report of it in another Comm.
func (f *Fault) Said() string {
	switch {
	case f.Err != nil:
		return f.Err.Error()
	case f.Code == Closed:
		return "it has closed the old Comm"
	case f.Code == Mismatch:
		return "it has made another call"
	}
	return f.Error()
}

// Unwrap returns the cause, nil if there is none.
func (f *Fault) Unwrap() error { return f.Err }

// NewFault returns a fault at rank peer, with a cause if there is a format.
func NewFault(c Code, peer int, format string, a ...any) *Fault {
	f := &Fault{Code: c, Peer: peer}
	if format != "" {
		f.Err = fmt.Errorf(format, a...)
	}
	return f
}

// CtxFault returns the fault of a call whose context has ended with err, while the ranks in missing had not come.
func CtxFault(err error, missing []int) *Fault {
	code := Canceled
	if errors.Is(err, context.DeadlineExceeded) {
		code = Timeout
	}
	peer := -1
	if len(missing) > 0 {
		peer = missing[0]
	}
	return &Fault{Code: code, Peer: peer, Missing: missing, Own: true, Err: err}
}

// ContextFault is the fault of a call whose context has ended.
func ContextFault(err error) *Fault { return CtxFault(err, nil) }
