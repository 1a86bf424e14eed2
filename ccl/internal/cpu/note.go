package cpu

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
)

// note is a message between ranks that make a Comm of theirs: see Subset. All have one size, so one
// that is left of an attempt which came to nothing is read as what it is, and is known by its
// numbers. Ranks are those of the world.
type note struct {
	what     uint64
	from, to uint64 // the numbers of the sender's attempt, and of the receiver's where the sender knows it; else 0
	list     uint64 // of the ranks that the sender has called it with
	id       uint64 // of the Comm, once all have come

	// of noteMemory: where it lies, of how many ranks of the host, and which of them the receiver is
	off, locals, local uint64

	code, peer, missing uint64 // why it came to nothing, and how many follow
	names               [missingMost]uint64
}

// What a note says.
const (
	_          uint64 = iota
	noteHello         // I have come
	noteBegins        // the hub: all have
	noteMemory        // the memory of our host is there
	noteMade          // I have made my end, or have not
	noteDone          // the hub: all have
	noteOver          // it has come to nothing
)

const (
	noteWords   = int(unsafe.Sizeof(note{})) / 8
	missingMost = 16 // that a note names
)

// bytes is the memory of n.
func (n *note) bytes() []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(n)), unsafe.Sizeof(*n))
}

// blame says that f is why.
func (n *note) blame(f *call.Fault) *note {
	n.code, n.peer = uint64(f.Code), uint64(int64(f.Peer))
	n.missing = uint64(min(len(f.Missing), missingMost))
	for i, r := range f.Missing[:n.missing] {
		n.names[i] = uint64(r)
	}
	return n
}

// Why a Subset has come to nothing, as its ranks hear it.
var (
	errAbsent  = errors.New("not all ranks of the list have called it")
	errGaveUp  = errors.New("the rank has given it up: its context was canceled")
	errTooLate = errors.New("the rank's time ended before the new Comm was made")
	errLists   = errors.New("the rank has called it with another list of ranks")
	errNoRoom  = errors.New("the rank has no shared memory left for the new Comm")
)

// fault is what n says of ranks.
func (n *note) fault(ranks []int) *call.Fault {
	f := &call.Fault{Code: call.Code(n.code), Peer: int(int64(n.peer))}
	if !slices.Contains(ranks, f.Peer) {
		f.Peer = -1
	}
	for _, r := range n.names[:min(n.missing, missingMost)] {
		if slices.Contains(ranks, int(r)) {
			f.Missing = append(f.Missing, int(r))
		}
	}
	switch f.Code {
	case call.Timeout:
		if f.Err = errAbsent; len(f.Missing) == 0 {
			f.Err = errTooLate
		}
	case call.Canceled:
		f.Err = errGaveUp
	case call.Mismatch:
		f.Err = errLists
	case call.Backend:
		f.Err = errNoRoom
	}
	return f
}
