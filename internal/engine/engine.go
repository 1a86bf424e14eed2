// Package engine is the seam between package ccl and the libraries that can carry out its
// calls: NCCL, RCCL, oneCCL, MPI. Every Comm has the CPU engine for its control plane (order,
// mismatches, deaths, timeouts, host slices); a Comm that was asked for a library has an Engine
// beside it, which moves the data.
package engine

import (
	"context"
	"errors"
	"time"
)

// Backend is a library, as far as this build knows it.
type Backend interface {
	// Name is what Options.Backend calls it: "nccl", "rccl", "oneccl", "mpi".
	Name() string

	// Device is the device that the rank which is the local-th of locals on its host would use:
	// want where that is not negative. It must not be slow, load no library that cannot be left
	// loaded, and its error says what is there and what to do. A library for host memory
	// alone returns -1.
	Device(want, local, locals int) (device int, err error)

	// Open loads the library and is called before any rank is told to go on, so an error keeps
	// the Comm from being made on all ranks: a missing library, with all that was tried.
	Open() (Library, error)
}

// Sole is a Backend whose library takes one rank of a job per process.
type Sole interface {
	Sole() bool
}

// Library is a loaded library. It stays loaded until the process ends.
type Library interface {
	// Version reads like "NCCL 2.28.9". All ranks must have the same.
	Version() string

	// ID makes the id by which the ranks of a new communicator find each other. Rank 0 calls it;
	// the others get the bytes. A library that needs none returns nil.
	ID() ([]byte, error)

	// New makes this rank's end of a communicator. All of the group's ranks call it, with the id.
	// It returns within ctx where the library allows that, and says so where it does not.
	New(ctx context.Context, g Group, id []byte) (Engine, error)
}

// Group is the ranks of a new communicator, as one of them sees it.
type Group struct {
	Rank, Size int
	Device     int // -1 for a library of host memory
	Local      int // this rank's place on its host
	Locals     int
	// Parent is set for a Split: the Engine that is being split. Color is negative for a rank that gets nothing, else the
	// world's rank of the new group's first; Key is Rank. Both are ranks, and so fit in 32 bits.
	Parent     Engine
	Color, Key int
	// Check is called while New waits for long: an error ends the wait. It is the control
	// plane's report that another rank has been lost, or that ctx has ended.
	Check func() error
	// Strict asks for what ccl.CheckStrict promises.
	Strict bool
	Hints  Hints  // which the Library has not refused
	Name   string // what the library may call the communicator in its own messages
}

// Engine is one rank's end of a communicator. Run and Issue are for one goroutine at a time; the
// others are for any.
type Engine interface {
	// Supports is nil, or why the library cannot make such a call: an answer that must be the same
	// on all ranks. host says that the data lie in host memory.
	Supports(k Kind, t Type, op Op, host bool) error

	// Run makes calls on host memory and returns when they are done: mostly one, else a group,
	// whose sends and receives must not wait for each other in the order given. An engine whose library
	// takes no host memory stages through its device.
	Run(ctx context.Context, calls []Call) error

	// Issue hands over calls on device memory, as one group where there are several, in the order
	// of the stream, and returns once they are issued.
	Issue(stream uintptr, calls []Call) error

	// Mark notes the present end of the stream; Passed reports whether the stream has got there.
	// A Mark that was passed, or that failed, is free again. Marks are recycled: none is made per call.
	Mark(stream uintptr) (Mark, error)

	// Err is what has gone wrong inside the library meanwhile, nil if nothing: the monitor asks.
	Err() error

	// Abort makes calls under way end, on this rank, as soon as the library allows. It never
	// blocks, and may be called again. What Interruptible denies it gives up: such a call's
	// thread stays inside the library.
	Abort()

	// Interruptible reports whether Abort ends a call under way.
	Interruptible() bool

	// Close frees the communicator. After Abort it does not wait for peers.
	Close() error

	// Native is the library's own handle: ncclComm_t, the value of an MPI_Comm.
	Native() uintptr
}

// ErrCapturing is Mark's error on a stream that is being captured into a graph, on which no event may be recorded.
var ErrCapturing = errors.New("the stream is being captured into a graph: its calls run when the graph is launched")

// ErrNotNow is Mark's error while a capture is under way elsewhere that would break.
var ErrNotNow = errors.New("another stream is being captured into a graph: events cannot be queried")

// Mark is a place in a stream.
type Mark interface {
	// Passed reports whether all before the mark is done. An error is the device's.
	Passed() (bool, error)
}

// Splitter is an Engine whose library splits a communicator by itself. All ranks of the parent
// call it, those with a negative color as well; these get nil.
type Splitter interface {
	Split(ctx context.Context, g Group) (Engine, error)
}

// JobEnder is an Engine whose library can have the launcher end the whole job. A launcher may leave the other processes
// alone when one ends by itself.
type JobEnder interface {
	// EndJob ends this process as well, and does not return then. It may hang where a call is inside the library.
	EndJob(status int)
}

// Shrinker is an Engine whose library makes a communicator without the ranks in lost.
type Shrinker interface {
	// Shrinks waits until Abort is over and reports whether the communicator is still there to be shrunk.
	Shrinks(ctx context.Context) bool
	// Shrink makes this rank's end of one without lost, the ranks of this one in order, of which there is at least one.
	Shrink(ctx context.Context, g Group, lost []int) (Engine, error)
}

// Connector is an Engine whose library makes connections when they are first needed, inside a call of the rank's own that
// waits for the other ranks.
type Connector interface {
	Connects() bool
	// Connect is Issue of calls for which connections may be made. Abort ends its wait, though the call may stay inside the
	// library.
	Connect(stream uintptr, calls []Call) error
}

// Leveled is an Engine of which what it supports depends on the device and its runtime: of each
// level the least of all ranks counts on all.
type Leveled interface {
	Levels() []int64
	SetLevels(least []int64)
}

// InPlacer is an Engine that may not take one memory as both buffers of a call that it makes with
// two. The answer is the same on all ranks.
type InPlacer interface {
	// InPlace is nil, or why calls of that kind need a second buffer.
	InPlace(k Kind) error
}

// Timer is an Engine whose device can take the time of calls.
type Timer interface {
	// Timed is Issue, or Connect, of calls whose time on the device is to be known. The Span is nil where it cannot be: the stream
	// is being captured, say, or the device makes no event.
	Timed(stream uintptr, calls []Call, connect bool) (Span, error)
}

// Span is the time of calls on a device.
type Span interface {
	// Took is the time, once the stream has passed the calls; ok is false where it is not known. The Span is over then.
	Took() (d time.Duration, ok bool)
}

// LibraryError is a failure inside a library: its own code and text.
type LibraryError struct {
	Library string // "NCCL 2.28.9"
	Call    string // "ncclAllReduce"
	Result  int
	Text    string
}

func (e *LibraryError) Error() string { return e.Library + ": " + e.Call + ": " + e.Text }
