package ccl

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/op"
)

// Code classifies an [Error]. A Code is itself an error, so that errors.Is(err, ccl.ErrRankLost)
// works.
type Code uint8

// What can go wrong.
const (
	_ Code = iota
	// ErrArgument reports a wrong argument on this rank, or, where a value cannot be encoded, on rank
	// Peer. The call had no effect, and the Comm is good.
	ErrArgument
	// ErrUnsupported reports what this backend cannot do. The call had no effect, and the Comm is good.
	ErrUnsupported
	// ErrMismatch reports that ranks have made different calls: see Mine and Theirs.
	ErrMismatch
	// ErrRankLost reports that rank Peer exited or fell silent.
	ErrRankLost
	// ErrTimeout reports that Options.Timeout or a deadline passed. Missing lists the late ranks.
	ErrTimeout
	// ErrCanceled reports that a context was canceled, or that a message of a Link was given up, by
	// rank Peer if that is not -1.
	ErrCanceled
	// ErrAborted reports that rank Peer called Abort.
	ErrAborted
	// ErrUnauthorized reports, while a job starts, that the other side does not know its secret, or that what it sent was
	// changed on the way.
	ErrUnauthorized
	// ErrVersion reports, while a job starts, that ranks run different versions or options.
	ErrVersion
	// ErrBackend reports that the library or the system failed: see Err.
	ErrBackend
	// ErrClosed reports that the Comm was closed, here or on rank Peer.
	ErrClosed
	// ErrUnused reports, to a spare or a process that came late, which waited in NewComm or Join, that
	// the job ended without it. All is well.
	ErrUnused
	codeEnd
)

var codeText = [codeEnd]string{
	"", "bad argument", "unsupported", "ranks disagree about the call", "rank lost", "timed out", "canceled",
	"aborted", "unauthorized", "versions or options differ", "the system or a library failed", "closed", "not needed",
}

// Error returns what the code means, such as "rank lost".
func (k Code) Error() string {
	if k == 0 || k >= codeEnd {
		return "error " + strconv.Itoa(int(k))
	}
	return codeText[k]
}

// Error is the only error type that this package returns.
type Error struct {
	// Code says what kind of failure this is.
	Code Code
	// Op is the operation that failed: "AllReduce", "NewComm", ...
	Op string
	// Rank is this rank in the Comm. Peer is the rank at fault, or -1 if none is known: the same on all
	// ranks, except with ErrMismatch, where it is a rank with another call. With ErrTimeout it is the first
	// of Missing, with ErrCanceled the rank whose context was canceled.
	Rank, Peer int
	// Missing lists the ranks that have not joined or not arrived, where they are known: up to 16 in
	// the failure of a Comm, the same on all ranks. A rank that waits in the call is not among them.
	Missing []int
	// Certain says, with ErrRankLost, that Peer's process has ended. Otherwise it is silent or cannot
	// be reached: it may be stopped, or live on the other side of a partition, and go on.
	Certain bool
	// Mine is this rank's call, Theirs is Peer's call: with ErrClosed its last collective. Each is nil
	// where it is not known.
	Mine, Theirs *Call
	// Err is the cause: a context's error, an errno or a *VendorError, for example. It may be nil.
	Err error
	// Comm is the name of the Comm. It is empty for the Comm of all ranks.
	Comm    string
	earlier bool  // Mine is a call before the one that returns this
	others  bool  // two other ranks disagree, about a call in which this one is not: Err has both calls
	loss    *loss // whether the program has been given it; nil where that does not matter
	told    bool  // Err says what the ranks in Missing have not done
	// World maps each rank of the Comm to its rank in the job. It is nil where the two are the
	// same.
	World []int
}

// rank is a rank of the Comm as text, with its rank in the job where that is another.
func (e *Error) rank(r int) string {
	world := r
	if r >= 0 && r < len(e.World) {
		world = e.World[r]
	}
	return fmt.Sprintf("rank %d%s", r, inWorld([]int{world}, []int{r}))
}

// worldName is the name of the Comm of all ranks of a job, unless a program gives it another.
const worldName = "world"

// firstCause is what began a chain of failures of which cause is the last: one Comm is often
// aborted with the failure of another. What each of them adds says nothing new.
func firstCause(cause error) error {
	for {
		var e *Error
		if !errors.As(cause, &e) {
			return cause
		}
		var inner *Error
		switch {
		case e.Code == ErrAborted && e.Err != nil:
			cause = e.Err
		case errors.As(e.Err, &inner):
			cause = inner
		default:
			return brief{e}
		}
	}
}

// Error returns one line, such as: ccl: rank 3: AllReduce #41 float x 1024 sum: rank 5 lost: killed
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("ccl: ")
	if e.Comm != "" {
		b.WriteString(e.Comm + ": ")
	}
	if e.Rank >= 0 {
		b.WriteString(e.rank(e.Rank) + ": ")
	}
	switch {
	case e.differs():
	case e.Mine != nil:
		b.WriteString(e.Mine.String() + ": ")
	default:
		b.WriteString(e.Op + ": ")
	}
	b.WriteString(e.what())
	return b.String()
}

// differs reports whether e is about two calls, which its text names in its own way.
func (e *Error) differs() bool {
	return e.Code == ErrMismatch && e.Mine != nil && e.Theirs != nil && !e.others
}

// what says what happened, without where.
func (e *Error) what() string {
	var b strings.Builder
	switch {
	case e.differs():
		mine, theirs := e.Mine.describe(), e.Theirs.describe()
		here, there := *e.Mine, *e.Theirs
		here.Caller, there.Caller = "", ""
		if here.describe() == there.describe() {
			return fmt.Sprintf("%s: %s made different calls before it, or used different counts or factors", e.Mine,
				e.rank(e.Peer))
		}
		return fmt.Sprintf("call #%d differs: here %s, %s has %s", e.Mine.Seq, mine, e.rank(e.Peer), theirs)
	case e.refused():
		if e.Err != nil {
			return e.Err.Error()
		}
		return e.Code.Error()
	case e.Code == ErrRankLost && e.Peer >= 0:
		fmt.Fprintf(&b, "%s lost", e.rank(e.Peer))
	case e.Code == ErrClosed && e.Peer >= 0 && e.Peer != e.Rank:
		fmt.Fprintf(&b, "%s has closed the Comm", e.rank(e.Peer))
		if e.Theirs != nil {
			fmt.Fprintf(&b, " after %s", e.Theirs)
		}
	case e.Code == ErrClosed && e.Err != nil:
		return e.Err.Error()
	case e.Code == ErrClosed:
		b.WriteString("the Comm is closed")
	case e.Code == ErrAborted && e.Peer >= 0:
		fmt.Fprintf(&b, "aborted by %s", e.rank(e.Peer))
	case e.Peer >= 0:
		fmt.Fprintf(&b, "%s at %s", e.Code.Error(), e.rank(e.Peer))
	default:
		b.WriteString(e.Code.Error())
	}
	if len(e.Missing) > 0 && !e.told {
		fmt.Fprintf(&b, "; no response from: rank%s %s", plural(len(e.Missing)), ranks(e.Missing))
		if e.World != nil {
			b.WriteString(worldRanks(e.World, e.Missing))
		}
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// refused reports whether e's cause says all that there is to say.
func (e *Error) refused() bool {
	switch e.Code {
	case ErrArgument, ErrUnsupported, ErrBackend, ErrVersion, ErrUnauthorized, ErrUnused:
		return true
	}
	return false
}

// brief is an Error as the cause of another: without what the other says as well, such as "ccl" and the rank that
// reports it. News between ranks have room for some hundred bytes, and what happened must be among them.
type brief struct{ of *Error }

// Error reads like: dp: rank 1 (world rank 5) lost: killed
func (b brief) Error() string {
	e, at := b.of, ""
	if e.Comm != "" {
		at = e.Comm + ": "
	}
	switch {
	case e.differs() && e.Rank >= 0:
		at += e.rank(e.Rank) + ": "
	case e.refused():
		at += e.Op + ": "
	}
	return at + e.what()
}

// Unwrap gives the Error itself.
func (b brief) Unwrap() error { return b.of }

func plural(n int) string {
	if n == 1 {
		return ""
	}
	return "s"
}

// worldRanks are ranks of a Comm as ranks of the job, as inWorld writes them.
func worldRanks(world, of []int) string {
	var list []int
	for _, r := range of {
		if r >= 0 && r < len(world) {
			list = append(list, world[r])
		}
	}
	return inWorld(list, of)
}

// inWorld adds to ranks of a Comm the same ones of the job, where they are others.
func inWorld(world, ranksOf []int) string {
	if slices.Equal(world, ranksOf) {
		return ""
	}
	return fmt.Sprintf(" (world rank%s %s)", plural(len(world)), ranks(world))
}

// ranks writes a list of ranks, the first sixteen of them.
func ranks(r []int) string {
	text := joined(r[:min(len(r), 16)], ", ", strconv.Itoa)
	if len(r) > 16 {
		text += fmt.Sprintf(" and %d more", len(r)-16)
	}
	return text
}

// joined writes what text says of each of list, with sep between them.
func joined[T any](list []T, sep string, text func(T) string) string {
	parts := make([]string, len(list))
	for i, x := range list {
		parts[i] = text(x)
	}
	return strings.Join(parts, sep)
}

// Unwrap returns the Code and the cause, for errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Code}
	}
	return []error{e.Code, e.Err}
}

// VendorError is a failure inside a vendor library: its own code and text.
type VendorError struct {
	Library string // "NCCL 2.28.9"
	Result  int
	Text    string
}

// Error reads like: NCCL 2.28.9: unhandled cuda error (1)
func (e *VendorError) Error() string {
	return fmt.Sprintf("%s: %s (%d)", e.Library, e.Text, e.Result)
}

// Call is one entry of the flight recorder: one call as a rank made it.
type Call struct {
	// Seq numbers the calls of the Comm from 1; what the Comm calls for itself as it begins has 0.
	// Count is the number of elements.
	Seq, Count uint64
	// Kind is the collective.
	Kind Kind
	// Type is the type of the elements.
	Type Type
	// Op is the operator, for calls that reduce.
	Op Op
	// State says how far the call is.
	State State
	// Root is the root or the peer, or -1 if there is none.
	Root int32
	// Number is what Queue.Numbered gave the call, or 0.
	Number int32
	// Start and End are times since NewComm, by the monitor's coarse clock. End is 0 while the
	// call runs.
	Start, End time.Duration
	// Factor is what an operator of Comm.Scaled multiplies by, to seven digits.
	Factor float64
	// Caller is the line that made the call, such as "llm/train.go:88", if the call waited long enough
	// to be looked at, or has failed.
	Caller string
}

// String returns a line such as: AllReduce #41 float x 1024 sum
func (c *Call) String() string {
	s := c.describe()
	if c.Seq == 0 { // the Comm's own, as it begins
		return s
	}
	return strings.Replace(s, c.Kind.String(), fmt.Sprintf("%s #%d", c.Kind, c.Seq), 1)
}

// describe is the call without its place in the order.
func (c *Call) describe() string {
	s := c.Kind.String()
	if c.Kind == KindGraph {
		return fmt.Sprintf("%s of %d call%s", s, c.Count, plural(int(c.Count)))
	}
	if c.Type != TypeNone {
		s += fmt.Sprintf(" %s x %d", c.Type, c.Count)
	}
	if op.Kind(c.Kind).Reduces() {
		s += " " + c.Op.String()
		if c.Op >= firstScaled {
			s += fmt.Sprintf(" by %.7g", c.Factor)
		}
	}
	if c.Root >= 0 {
		if op.Kind(c.Kind).Rooted() {
			s += fmt.Sprintf(" root %d", c.Root)
		} else {
			s += fmt.Sprintf(" peer %d", c.Root)
		}
	}
	if c.Number > 0 {
		s += fmt.Sprintf(" number %d", c.Number)
	}
	if c.Caller != "" {
		s += " at " + c.Caller
	}
	return s
}
