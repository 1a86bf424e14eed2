package ccl

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl/boot"
)

// bootCodes are boot's codes as this package has them.
var bootCodes = map[boot.Code]Code{
	boot.Argument: ErrArgument, boot.Timeout: ErrTimeout, boot.Canceled: ErrCanceled,
	boot.Unauthorized: ErrUnauthorized, boot.Version: ErrVersion,
	boot.Mismatch: ErrMismatch, boot.Lost: ErrRankLost, boot.Closed: ErrClosed,
}

// bootError is an error of package boot as an Error.
func bootError(err error) *Error {
	e := &Error{Code: ErrBackend, Op: "NewComm", Rank: -1, Peer: -1, Err: err}
	var b *boot.Error
	switch {
	case errors.As(err, &b):
		if code, ok := bootCodes[b.Code]; ok {
			e.Code = code
		}
		e.Rank, e.Peer, e.Missing = b.Rank, b.Peer, b.Missing
	case errors.Is(err, context.DeadlineExceeded):
		e.Code = ErrTimeout
	case errors.Is(err, context.Canceled):
		e.Code = ErrCanceled
	}
	return e
}
