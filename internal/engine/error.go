package engine

import "errors"

// ErrUnsupported is the answer of an Engine to what its library does not do. The error of a version that lacks it is a
// *Lacks, which is this one as well.
var ErrUnsupported = errors.New("the library does not do this")

// ErrCapturing is Mark's error on a stream that is being captured into a graph, on which no event may be recorded.
var ErrCapturing = errors.New("the stream is being captured into a graph: its calls run when the graph is launched")

// ErrNotNow is Mark's error while a capture is under way elsewhere that would break.
var ErrNotNow = errors.New("another stream is being captured into a graph: events cannot be queried")

// Lacks is the error of a call that this version of a library does not have.
type Lacks struct{ Library, Call, Since string }

func (e *Lacks) Error() string { return e.Library + " has no " + e.Call + "; that needs " + e.Since }

// Is reports whether err is ErrUnsupported.
func (e *Lacks) Is(err error) bool { return err == ErrUnsupported }

// LibraryError is a failure inside a library: its own code and text.
type LibraryError struct {
	Library string // "NCCL 2.28.9"
	Call    string // "ncclAllReduce"
	Result  int
	Text    string
}

func (e *LibraryError) Error() string { return e.Library + ": " + e.Call + ": " + e.Text }
