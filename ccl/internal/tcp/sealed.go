package tcp

import (
	"net"
	"sync/atomic"

	"github.com/goccl/goccl/internal/auth"
)

// ErrChanged is why nothing more is received from a peer whose data were changed on the way.
var ErrChanged = auth.ErrChanged

// sealed makes records of what a Conn sends, and opens those that it receives: see auth.Direction. The record under way
// is kept until the kernel has taken all of it, and only then its bytes count as sent. So a sender that is done leaves
// nothing behind that nobody would send.
type sealed struct {
	out     *auth.Direction
	unsent  []byte // of the record under way
	carries int    // bytes of it
	sending []byte // its memory

	in   *auth.Direction
	got  []byte      // what has been received and not opened, in come
	come []byte      // the memory: room for the largest record
	left []byte      // of the last record that opened, what has not been asked for
	some atomic.Bool // something can be asked for: for Waits of another goroutine
	err  error       // a record did not open: nothing more is received
}

// plainConn is a Conn without its seal.
type plainConn interface {
	sendNow(a, b []byte) (int, error)
	receiveNow(a, b []byte) (int, error)
	isClosed() bool
}

// send is TrySend of a and then b: of one record at most.
func (s *sealed) send(to plainConn, a, b []byte) (int, error) {
	if s.carries == 0 {
		a = a[:min(len(a), auth.MaxRecord)]
		b = b[:min(len(b), auth.MaxRecord-len(a))]
		if s.carries = len(a) + len(b); s.carries == 0 {
			return 0, nil
		}
		s.sending = s.out.Seal(s.sending[:0], a, b)
		s.unsent = s.sending
	}
	n, err := to.sendNow(s.unsent, nil)
	if s.unsent = s.unsent[n:]; len(s.unsent) > 0 || err != nil {
		return 0, err
	}
	n, s.carries = s.carries, 0
	return n, nil
}

// receive is TryRecv into a and then b.
func (s *sealed) receive(from plainConn, a, b []byte) (int, error) {
	switch {
	case len(a)+len(b) == 0:
		return 0, nil
	case from.isClosed():
		return 0, net.ErrClosed
	}
	for len(s.left) == 0 {
		record, need := s.next()
		if s.err != nil {
			return 0, s.err
		}
		if record != nil {
			s.left, s.err = s.in.Open(record)
			continue
		}
		n, err := from.receiveNow(s.room(need), nil)
		if n == 0 {
			return 0, err
		}
		s.got = s.got[:len(s.got)+n]
	}
	n := copy(a, s.left)
	n += copy(b, s.left[n:])
	s.left = s.left[n:]
	s.note()
	return n, nil
}

// next takes the next record from what has come; nil if not all of it has, which takes need bytes.
func (s *sealed) next() (record []byte, need int) {
	if need = auth.RecordHead; len(s.got) >= need && s.err == nil {
		need, s.err = auth.RecordLen(s.got)
	}
	if s.err != nil || len(s.got) < need || need == auth.RecordHead {
		return nil, need
	}
	record, s.got = s.got[:need:need], s.got[need:]
	return record, need
}

// room is where to receive more, with what has come of a record of need bytes before it.
func (s *sealed) room(need int) []byte {
	if s.come == nil {
		s.come = make([]byte, auth.MaxRecord+auth.RecordOver)
	}
	if at := len(s.come) - cap(s.got); len(s.got) == 0 || need > len(s.come)-at {
		s.got = s.come[:copy(s.come, s.got)]
	}
	return s.got[len(s.got):cap(s.got)]
}

// note tells Waits.
func (s *sealed) note() {
	some := len(s.left) > 0
	if !some && len(s.got) >= auth.RecordHead {
		n, err := auth.RecordLen(s.got)
		some = err != nil || len(s.got) >= n
	}
	if some != s.some.Load() {
		s.some.Store(some)
	}
}

// holds reports whether there is something to receive that the kernel knows nothing of.
func (s *sealed) holds() bool { return s != nil && s.some.Load() }
