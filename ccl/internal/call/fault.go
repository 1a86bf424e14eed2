package call

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/inject"
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
	Peer    int // the rank of the Comm at fault, or -1: the same on all ranks, except with Mismatch
	Missing []int
	Own     bool    // this rank gave up
	Certain bool    // for RankLost: Peer's process has ended; else it is only silent, or out of reach
	Mine    *Record // for Mismatch: this rank's call, if not the one that failed
	Theirs  *Record // and Peer's
	Err     error

	// In a mismatch between two other ranks: the one that is not Peer, and its call.
	OtherPeer int
	Other     *Record
	Apart     bool // the call of this rank that the fault ended was not the one in dispute
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

// CtxCode is the code of a context that has ended with err.
func CtxCode(err error) Code {
	if errors.Is(err, context.DeadlineExceeded) && !inject.Wrong("call.code") {
		return Timeout
	}
	return Canceled
}

// CtxFault returns the fault of a call of rank me whose context has ended with err, while the ranks
// in missing, as is known, had not come. A rank that is canceled is at fault itself. Of a timeout
// it is the first that is missing; where none is known, the cause says whose limit it was.
func CtxFault(err error, me int, missing []int) *Fault {
	f := &Fault{Code: CtxCode(err), Peer: me, Missing: missing, Own: true, Err: err}
	switch {
	case f.Code == Canceled:
	case len(missing) > 0:
		f.Peer = missing[0]
	default:
		f.Peer, f.Err = -1, fmt.Errorf("on rank %d: %w", me, err)
	}
	return f
}
