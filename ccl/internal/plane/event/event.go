package event

import (
	"errors"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/plain"
)

// An Event is a report on its way to every rank that it concerns, most often of a failure: through the
// log of a host to its processes, and from host to host.
type Event struct {
	Comm   uint64 // 0: every Comm of which Peer is a member
	Peer   int32  // the rank at fault: of Comm, or of the world where Comm is 0; -1: none
	From   int32  // the rank that reports it, likewise
	Node   int32  // and its host
	Origin int32  // the process that reports it, by its lowest rank of the world,
	Number uint64 // and which of its events this is: see control.Flood
	// ranks of a Comm that spans hosts, which are counted before a mismatch is decided; of Voted,
	// those of Node, in the last of its first answer; else 0
	Size    int32
	Code    uint8
	Stage   Stage
	Loss    Loss  // what is known of it, where Peer is lost
	Bytes   uint8 // of text
	Text    [97]byte
	Missing ranks       // ranks of Comm that had not come, where Code is Timeout or Canceled
	Call    call.Record // From's call, for Mismatch
	Theirs  call.Record // and Peer's, or Peer's last before it closed the Comm; of no kind where that is not known
}

// MissingMost is how many late ranks an event names, at most.
const MissingMost = 16

// ranks are a few of a Comm.
type ranks struct {
	n    uint8
	list [MissingMost]int32
}

func (l *ranks) ints() (of []int) {
	for _, r := range l.list[:min(int(l.n), MissingMost)] {
		of = append(of, int(r))
	}
	return of
}

// SetMissing has e name late ranks.
func (e *Event) SetMissing(late []int) {
	e.Missing.n = uint8(min(len(late), MissingMost))
	for i, r := range late[:e.Missing.n] {
		e.Missing.list[i] = int32(r)
	}
}

// Stage is how far an event is on its way. Where a Comm spans several hosts, one of them decides
// which of several causes came first, so that all ranks have the same: see Sequencer.
type Stage uint8

const (
	Final    Stage = iota // to be believed
	Proposed              // to be put in order first
	Decided               // the same event, in its order
)

// Loss is what is known of the loss of a rank.
type Loss uint8

const (
	Suspected Loss = iota // the rank is silent, or out of reach
	Ended                 // its process seems to have ended, and will send nothing more
	Certain               // its process has ended, and is not merely out of reach
	lossEnd
)

// What events say beside failures.
const (
	// the process of rank Peer of the world, the lead of its host, has left in good order
	ProcessLeft call.Code = call.Closed + 1 + iota
	RankLeft              // so has that of rank Peer of the world
	AskLeft               // has it?
	NewLead               // that of rank Peer of the world leads its host now
	// Peer ranks of host Node, of which From is the lowest, have made collective Call
	Voted
	HostClosed // all ranks of host Node have closed the Comm
	codeEnd
)

// New is the event that a rank reports: code, the rank at fault, the rank that reports it and its host, and why.
func New(comm uint64, code call.Code, peer, from, node int, cause error) Event {
	e := Event{Comm: comm, Code: uint8(code), Peer: int32(peer), From: int32(from), Node: int32(node)}
	if cause != nil {
		e.Bytes = uint8(copy(e.Text[:], cause.Error()))
	}
	return e
}

// Cause is why, nil if e does not say.
func (e *Event) Cause() error {
	if e.Bytes == 0 || int(e.Bytes) > len(e.Text) {
		return nil
	}
	return errors.New(plain.Text(strings.ToValidUTF8(string(e.Text[:e.Bytes]), ""))) // the last rune may have been cut
}

// Fault is e as rank me of the Comm sees it; differs says whether a call is another than
// this rank's of that number.
func (e *Event) Fault(me int, differs func(*call.Record) bool) *call.Fault {
	f := &call.Fault{Code: call.Code(e.Code), Peer: int(e.Peer), Missing: e.Missing.ints(), Certain: e.Loss == Certain,
		Err: e.Cause()}
	if f.Code == call.Closed && e.Theirs.Kind != 0 {
		last := e.Theirs
		f.Theirs = &last
	}
	if f.Code != call.Mismatch || f.Err != nil && e.Theirs.Kind == 0 && e.Peer == e.From {
		return f // a call that was rejected has no other side
	}
	call, theirs := e.Call, e.Theirs
	switch {
	case int(e.Peer) == me || int(e.From) != me && differs(&call):
		// To this rank the one that reports it is the other.
		f.Peer, f.Theirs = int(e.From), &call
		if int(e.Peer) == me && theirs.Kind != 0 {
			f.Mine = &theirs
		}
	case theirs.Kind != 0:
		if f.Theirs = &theirs; int(e.From) == me { // which knows its side
			f.Mine = &call
		} else {
			f.OtherPeer, f.Other = int(e.From), &call
		}
	}
	return f
}

// Log hands events to the processes of a host: a ring in shared memory, which every monitor reads. The order there
// is the order in which all believe them. What the slowest of them has not read is not overwritten.
type Log = shm.Ring[Event]
