package boot

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
)

// Code classifies an Error. It is an error itself: errors.Is(err, boot.Timeout).
type Code uint8

const (
	_        Code = iota
	Argument      // an argument or the environment is wrong
	Timeout       // the context's deadline, or the limit of the bootstrap, passed
	Canceled      // a context was canceled
	// the other side does not know the job's secret, one is required and there is none, or bytes were
	// changed on the way
	Unauthorized
	Version  // ranks run different versions of goccl
	Mismatch // ranks disagree: two of one rank, or two sizes
	Lost     // Peer exited before the bootstrap was over
	Closed   // use after Close
	System   // the operating system or the launcher failed; see Err
)

var codeText = [...]string{"", "wrong argument", "timeout", "canceled", "unauthorized",
	"version differs", "ranks disagree", "rank lost", "closed", "system error"}

// Error returns what the code means, such as "rank lost".
func (c Code) Error() string {
	if int(c) < len(codeText) {
		return codeText[c]
	}
	return "code " + strconv.Itoa(int(c))
}

// Error is the only error type that this package returns, except [ExitError].
type Error struct {
	// Code says what kind of failure this is.
	Code Code
	// Rank is this rank, Size the number of ranks of its job. Each is -1 where it is not known.
	Rank, Size int
	// Peer is the rank at fault, or -1.
	Peer int
	// Missing lists the ranks that have not joined, or whose value has not arrived.
	Missing []int
	// Text says what happened and what to do, without the reporting rank.
	Text string
	// Err is the cause, if there is one below this package.
	Err error
}

// Error returns a line such as: boot: rank 0 of 4: 1 rank has not joined after 30s: 3
func (e *Error) Error() string {
	switch {
	case e.Rank < 0:
		return "boot: " + e.Text
	case e.Size < 0:
		return fmt.Sprintf("boot: rank %d: %s", e.Rank, e.Text)
	}
	return fmt.Sprintf("boot: rank %d of %d: %s", e.Rank, e.Size, e.Text)
}

// Unwrap returns Code, and Err where there is one.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// fault makes an error that no rank has signed yet. An error among args becomes its cause.
func fault(code Code, format string, args ...any) *Error {
	e := &Error{Code: code, Rank: -1, Size: -1, Peer: -1}
	for i, a := range args {
		err, ok := a.(error)
		if !ok {
			continue
		}
		e.Err = err
		if inner := (*Error)(nil); errors.As(err, &inner) {
			args[i] = inner.Text // once is enough to say who speaks
		}
	}
	e.Text = fmt.Sprintf(format, args...)
	return e
}

// orFault is err where that is this package's own, else a fault of the system: what went wrong.
func orFault(err error, what string) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	return fault(System, "%s: %v", what, err)
}

// cannotListen is the fault of a listener that could not be bound, which what says.
func cannotListen(err error, what string, args ...any) *Error {
	if t := inet.Of(err); t != nil {
		return fault(System, "%v", t)
	}
	code := System
	if errors.Is(err, inet.ErrRange) {
		code = Argument
	}
	return fault(code, what+": %v", append(args, err)...)
}

// changed is the error for what one sent to the other and somebody on the way has changed.
func changed(from, to join) *Error {
	return fault(Unauthorized, "%v from rank %d (%v) to rank %d (%v)", auth.ErrChanged, from.Rank, from, to.Rank,
		to).by(from.Rank)
}

// by returns e with peer as the rank at fault.
func (e *Error) by(peer int) *Error {
	e.Peer = peer
	return e
}

// of returns e as rank's own.
func (e *Error) of(rank, size int) *Error {
	mine := *e
	mine.Rank, mine.Size = rank, size
	return &mine
}

// maxListed is how many runs of ranks a message lists.
const maxListed = 16

// listRanks writes ranks as people do: 1, 3-7 and 9.
func listRanks(ranks []int) string {
	ranks = slices.Compact(slices.Sorted(slices.Values(ranks)))
	var runs []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if len(runs) == maxListed {
			return strings.Join(runs, ", ") + fmt.Sprintf(" and %d more", len(ranks)-i)
		}
		switch {
		case j == i:
			runs = append(runs, strconv.Itoa(ranks[i]))
		case j == i+1:
			runs = append(runs, strconv.Itoa(ranks[i]), strconv.Itoa(ranks[j]))
		default:
			runs = append(runs, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		}
		i = j + 1
	}
	return strings.Join(runs, ", ")
}

// absent says which ranks have not done something: "1 rank has not joined", "2 ranks have not joined".
func absent(ranks []int, what string) string {
	if len(ranks) == 1 {
		return "1 rank has not " + what
	}
	return fmt.Sprintf("%d ranks have not %s", len(ranks), what)
}
