// Package engine is the seam between package ccl and what carries out its calls: the CPU engine,
// and the libraries NCCL, RCCL, oneCCL and MPI. Each is an Engine. Every Comm has the CPU engine,
// which also is its control plane (order, mismatches, deaths, timeouts); a Comm that was asked for a
// library has an Engine beside it, which moves the data.
//
// A library is one Backend: its row in this package says what is known of it whether or not a build
// has its engine, and the file with its build tag registers the row with the engine in it. Package
// ccl, bench and the documents read nothing else. An Engine answers ErrUnsupported to what its
// library lacks, which embedding Lacking does for it.
package engine

import (
	"context"
	"time"

	"github.com/goccl/goccl/internal/op"
)

// Library is a loaded library. It stays loaded until the process ends. Its facts follow from its
// version, and so are the same on all ranks.
type Library struct {
	Version       string // such as "NCCL 2.28.9": all ranks must have the same
	Interruptible bool   // Abort ends a call under way; otherwise the call's thread stays inside the library
	// Connects: connections are made when they are first needed, inside a call of the rank's own
	// that waits for the other ranks. Such a call is issued with Connecting.
	Connects bool
	Gathers  bool  // Close waits until all ranks of the host have called it
	Windows  error // why it makes no symmetric windows, nil if it does

	// ID makes the id by which the ranks of a new communicator find each other, of IDBytes. Rank 0
	// calls it; the others get the bytes. A library that needs none has no IDBytes.
	ID      func() ([]byte, error)
	IDBytes int
	// IDs is how many ids a communicator of that many ranks takes, each made by another rank. New gets
	// them one behind the other. A nil IDs stands for one id.
	IDs func(ranks int) int
	// New makes this rank's end of a communicator. All of the group's ranks call it, with the id.
	// It returns within ctx where the library allows that, and says so where it does not.
	New func(ctx context.Context, g Group, id []byte) (Engine, error)
	// Hints is nil, or which of them the library lacks. A library with a nil Hints takes none.
	Hints func(h Hints) error
	// EndJob has the launcher end the whole job, this process as well: it may leave the other
	// processes alone when one ends by itself. It may hang where a call is inside the library. It
	// is nil where the library has nothing to tell a launcher.
	EndJob func(status int)
}

// Group is the ranks of a new communicator, as one of them sees it.
type Group struct {
	Rank, Size int
	Device     int // -1 for a library of host memory
	Local      int // this rank's place on its host
	Locals     int
	// Color and Key are for Split. Color is negative for a rank that gets nothing, else the
	// world's rank of the new group's first; Key is Rank. Both are ranks, and so fit in 32 bits.
	Color, Key int
	// Check is called while a start waits for long: an error ends the wait. It is the control
	// plane's report that another rank has been lost, or that ctx has ended.
	Check func() error
	// Strict asks for what ccl.CheckStrict promises.
	Strict bool
	Hints  Hints  // which the Library has not refused
	Name   string // what the library may call the communicator in its own messages
}

// Hints are what a user asks of the way in which a library works. A field that is zero is left to the library.
type Hints struct {
	MinCTAs, MaxCTAs int
	CTAPolicy        int // 1: efficiency, 2: zero
	TrafficClass     int
	Net              string
	LaunchOrder      bool
}

// Engine is one rank's end of a communicator. Run, Issue, Split and Shrink are for one goroutine at
// a time; the other methods are for any. Lacking answers those that a library may lack.
type Engine interface {
	// Supports is nil, or why the library cannot make such a call: an answer that must be the same
	// on all ranks. host says that the data lie in host memory.
	Supports(k op.Kind, t op.Type, o op.Op, host bool) error

	// InPlace is nil, or why calls of that kind on device memory need a second buffer. The answer
	// is the same on all ranks.
	InPlace(k op.Kind) error

	// Agree is called once on all ranks of a new communicator. Engines of which what they support
	// depends on the device give least what theirs has, and get the least that any rank has, number
	// by number. All ranks call least equally often.
	Agree(least func(levels []int64) error) error

	// Run makes calls on host memory and returns when they are done: mostly one, else a group,
	// whose sends and receives must not wait for each other in the order given. An engine whose library
	// takes no host memory stages through its device.
	Run(ctx context.Context, calls []*op.Call) error

	// Issue hands over calls on device memory, as one group where there are several, in the order
	// of the stream, and returns once they are issued. With Timed it returns a Span, unless the
	// device cannot take the time: the stream is being captured, say.
	Issue(stream uintptr, calls []*op.Call, how How) (Span, error)

	// Mark notes the present end of the stream; Passed reports whether the stream has got there.
	// A Mark that was passed, or that failed, is free again. Marks are recycled: none is made per call.
	Mark(stream uintptr) (Mark, error)

	// Err is what has gone wrong inside the library meanwhile, nil if nothing: the monitor asks.
	Err() error

	// Split makes this rank's end of its color's part where the library splits by itself. All ranks
	// of the parent call it, those with a negative color as well; these get nil.
	Split(ctx context.Context, g Group) (Engine, error)

	// Shrinks waits until Abort is over. It is nil if the communicator is still there to be shrunk,
	// and ErrUnsupported, on all ranks, if the library shrinks none.
	Shrinks(ctx context.Context) error

	// Shrink makes this rank's end of a communicator without lost, the ranks of this one in order, of which
	// there is at least one. All others call it, once each of them Shrinks.
	Shrink(ctx context.Context, g Group, lost []int) (Engine, error)

	// Abort makes calls under way end, on this rank, as soon as the library allows. It never
	// blocks, and may be called again. Calls of a library that is not Interruptible it gives up.
	Abort()

	// Close frees the communicator. After Abort it does not wait for peers.
	Close() error

	// CloseApart is Close without waiting for the other ranks, where the library Gathers. What was
	// issued must have ended on the device: it is cut off otherwise.
	CloseApart() error

	// Native is the library's own handle: ncclComm_t, the value of an MPI_Comm.
	Native() uintptr
}

// Memory is an Engine whose library makes or registers memory, which it moves faster than other
// memory. A version that lacks a call returns a *Lacks.
type Memory interface {
	// Register tells the library of memory until release or Close. Every rank registers its own.
	Register(addr uintptr, bytes int) (release func() error, err error)

	// Alloc makes memory on the engine's device. It lives until release, whatever becomes of the
	// Engine.
	Alloc(bytes int) (addr uintptr, release func() error, err error)

	// Window makes a symmetric window of memory of Alloc. All ranks call it with as many bytes; it
	// waits for them, and Abort ends that. A nil release says that the library makes no window
	// here. Release is local.
	Window(addr uintptr, bytes int) (release func() error, err error)

	// Allocated is how many bytes of its device the library has allocated for the communicator.
	Allocated() (bytes uint64, err error)
}

// How says how calls are issued.
type How uint8

const (
	// they may wait inside the library for other ranks; Abort ends that wait, though the calls may
	// stay inside
	Connecting How = 1 << iota
	Timed          // the device takes their time
)

// Mark is a place in a stream.
type Mark interface {
	// Passed reports whether all before the mark is done. An error is the device's.
	Passed() (bool, error)
}

// Span is the time of calls on a device.
type Span interface {
	// Took is the time, once the stream has passed the calls; ok is false where it is not known. The Span is over then.
	Took() (d time.Duration, ok bool)
}

// Lacking is what an Engine embeds whose library lacks some of what an Engine does. It has no
// streams, needs no second buffer, has nothing to agree on, and neither splits nor shrinks.
type Lacking struct{}

// InPlace is nil.
func (Lacking) InPlace(op.Kind) error { return nil }

// Agree does nothing.
func (Lacking) Agree(func([]int64) error) error { return nil }

// Issue is not supported.
func (Lacking) Issue(uintptr, []*op.Call, How) (Span, error) { return nil, ErrUnsupported }

// Mark is not supported.
func (Lacking) Mark(uintptr) (Mark, error) { return nil, ErrUnsupported }

// Err is nil.
func (Lacking) Err() error { return nil }

// Split is not supported: what is made of a part of the ranks is a communicator like any other.
func (Lacking) Split(context.Context, Group) (Engine, error) { return nil, ErrUnsupported }

// Shrinks is not supported.
func (Lacking) Shrinks(context.Context) error { return ErrUnsupported }

// Shrink is not supported.
func (Lacking) Shrink(context.Context, Group, []int) (Engine, error) { return nil, ErrUnsupported }

// CloseApart is not supported: Close waits for nobody.
func (Lacking) CloseApart() error { return ErrUnsupported }

// Native is 0.
func (Lacking) Native() uintptr { return 0 }
