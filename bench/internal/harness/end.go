package harness

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/auth"
)

// weight orders errors by how near they are to the cause: what a rank met itself
// above what it heard of another.
func weight(err error) int {
	switch {
	case err == nil:
		return 0
	case consequence(err):
		return 1
	}
	return 2
}

// consequence reports whether err is what another rank's failure, or the user, did to this one.
func consequence(err error) bool {
	codes := []ccl.Code{ccl.ErrRankLost, ccl.ErrAborted, ccl.ErrCanceled, ccl.ErrTimeout, ccl.ErrClosed}
	return slices.ContainsFunc(codes, func(c ccl.Code) bool { return errors.Is(err, c) })
}

// end reports the failure of this process's ranks, so that of all processes one
// does, and returns the exit status.
func (p *plan) end(ctx context.Context, err error) int {
	interrupted := ctx.Err() != nil
	switch {
	case interrupted && p.ours:
		return option.Failed // the parent says so
	case interrupted && p.where.Rank == 0:
		return complain(option.Failed, errors.New("interrupted"))
	case interrupted:
		return option.Failed
	}
	if p.ours {
		// The first process to end ends the others, through the parent: let the one that
		// knows most be the first. Of a lost rank that is the parent itself.
		select {
		case <-ctx.Done():
			return option.Failed
		case <-time.After(p.patience(err)):
		}
	}
	switch {
	case !p.speaks(err):
		return option.Failed
	case refused(err):
		return complain(option.BadUsage, err)
	}
	return complain(option.Failed, err)
}

// refused reports whether err says that the environment is wrong, before there is a job.
func refused(err error) bool {
	var e *ccl.Error
	return errors.Is(err, boot.Argument) || errors.Is(err, auth.ErrRequired) || errors.As(err, &e) &&
		e.Op == "NewComm" && e.Code == ccl.ErrArgument
}

// patience is how long a rank waits to be ended before it reports err itself.
func (p *plan) patience(err error) time.Duration {
	switch {
	case errors.Is(err, ccl.ErrRankLost):
		return 3 * time.Second
	case !p.speaks(err):
		return 2 * time.Second
	case consequence(err):
		return time.Second
	case p.where.Rank > 0:
		return time.Second / 2
	}
	return 0
}

// speaks reports whether this process is the one to report err: the first one, the
// one that err comes from, or the second one where the first is gone.
func (p *plan) speaks(err error) bool {
	var e *ccl.Error
	if p.where.Rank == 0 || !consequence(err) {
		return true
	}
	if alone(err) {
		return p.where.Local <= 0 // the others of the host have the same reason
	}
	return p.where.Rank == 1 && errors.As(err, &e) && e.Code == ccl.ErrRankLost && e.Peer >= 0 && e.Peer < p.Threads
}

// alone reports whether err is that of a rank which rank 0 knows nothing of, since it has not found
// it: why, nobody else can say.
func alone(err error) bool {
	var e *boot.Error
	return errors.As(err, &e) && e.Code == boot.Timeout && slices.Equal(e.Missing, []int{0})
}
