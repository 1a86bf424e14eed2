package cpu

import (
	"errors"
	"sync/atomic"
)

// An event is a failure on its way to every rank it concerns: through the log of a
// host to its processes, and over the control tree to the other hosts.
type event struct {
	Comm  uint64 // 0: every Comm of which Peer is a member
	Peer  int32  // the rank at fault: of Comm, or of the world where Comm is 0; -1: none
	From  int32  // the rank that reports it, likewise
	Node  int32  // and its host
	Code  uint8
	Bytes uint8 // of text
	Text  [78]byte
	Call  Record // From's call, for Mismatch
}

func newEvent(comm uint64, code Code, peer, from, node int, cause error) event {
	e := event{Comm: comm, Code: uint8(code), Peer: int32(peer), From: int32(from), Node: int32(node)}
	if cause != nil {
		e.Bytes = uint8(copy(e.Text[:], cause.Error()))
	}
	return e
}

func eventOf(c *Comm, f *Fault) event {
	e := newEvent(c.id, f.Code, c.blamed(f), c.rank, c.site.node, f.Err)
	if f.Code == Mismatch { // found by the goroutine that makes the call
		e.Call = c.exec.current
	}
	return e
}

func (e *event) cause() error {
	if e.Bytes == 0 || int(e.Bytes) > len(e.Text) {
		return nil
	}
	return errors.New(string(e.Text[:e.Bytes]))
}

// fault is e as rank me of the Comm sees it.
func (e *event) fault(me int) *Fault {
	f := &Fault{Code: Code(e.Code), Peer: int(e.Peer), Err: e.cause()}
	if f.Code == Mismatch && f.Peer == me {
		// The other side found the difference first; to this rank it is the other.
		theirs := e.Call
		f.Peer, f.Theirs = int(e.From), &theirs
	}
	return f
}

// eventLog hands events to the processes of a host: an append-only ring in shared
// memory, which every monitor reads.
type eventLog struct {
	n     atomic.Uint64
	_     [120]byte
	slots [logSlots]struct {
		stamp atomic.Uint64 // 1 + the event's number, stored last
		e     event
	}
}

const logSlots = 64

func (l *eventLog) append(e event) {
	i := l.n.Add(1) - 1
	s := &l.slots[i%logSlots]
	s.stamp.Store(0)
	s.e = e
	s.stamp.Store(i + 1)
}

// read returns event i; ok is false while it is being written, gone that it was
// overwritten or its writer died.
func (l *eventLog) read(i uint64) (e event, ok, gone bool) {
	s := &l.slots[i%logSlots]
	if at := s.stamp.Load(); at != i+1 {
		return e, false, at > i+1
	}
	e = s.e
	return e, s.stamp.Load() == i+1, s.stamp.Load() > i+1
}
