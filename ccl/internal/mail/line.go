package mail

import (
	"bufio"
	"context"
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/backoff"
	"github.com/goccl/goccl/internal/op"
)

// line is all that one rank of this process sends to another rank.
type line struct {
	office   *Office
	from, to int
	box      *Box // of a rank of this process; else there is a stream

	mu      sync.Mutex
	next    uint64
	out     map[uint64]*Sending // which the receiver has not answered
	credit  int                 // bytes that it keeps
	stream  *auth.Stream        // nil: not connected
	dialing bool
	err     error // why it is not connected
	queue   []outgoing
	writing bool
}

// outgoing is a frame to write: of a Sending its head, and then one piece after the other; else as it is.
type outgoing struct {
	f  frame
	s  *Sending
	at int
}

// send takes s, whose memory is its own until it ends.
func (l *line) send(s *Sending) {
	l.mu.Lock()
	if s.isOver() { // before it had a number, by which it could be taken back
		l.mu.Unlock()
		return
	}
	l.next++
	s.seq = l.next
	if n := s.bytes(); s.path.Use.eager() && n <= eagerMost && l.credit+n <= creditMost {
		s.eager = true
		l.credit += n
	}
	l.out[s.seq] = s
	if l.box != nil {
		l.mu.Unlock()
		l.handOver(s)
		return
	}
	l.put(outgoing{f: frame{kind: frameHead, path: s.path, typ: s.typ, seq: s.seq, count: s.count}, s: s})
	l.mu.Unlock()
}

// handOver delivers s to a rank of this process.
func (l *line) handOver(s *Sending) {
	a := &arrival{from: l.from, seq: s.seq, typ: s.typ, count: s.count}
	a.answer = func(code uint8, typ op.Type, count uint64) { l.answered(s.seq, code, typ, count) }
	if !s.eager {
		a.fetch = func(r *Receiving) {
			if r.bytes() > pieceMost {
				go l.copyOver(s, r)
			} else {
				l.copyOver(s, r)
			}
		}
		l.box.deliver(s.path, a)
		return
	}
	s.mu.Lock()
	over := s.over
	a.body = append([]byte{}, s.mem...)
	s.mu.Unlock()
	if over {
		l.drop(s.seq)
		return
	}
	l.box.deliver(s.path, a)
	s.end(nil) // not before, since what that calls may send the next message
}

// copyOver copies what s has to where r wants it.
func (l *line) copyOver(s *Sending, r *Receiving) {
	s.mu.Lock()
	there := !s.over
	well := there && r.copyIn(s.mem)
	s.mu.Unlock()
	switch {
	case !there:
		l.drop(s.seq)
		r.again()
	case !well:
		l.answered(s.seq, takenFailed, 0, 0)
	default:
		r.end(nil)
		l.answered(s.seq, takenWell, 0, 0)
	}
}

// bytes is how large the message is.
func (m *message) bytes() int { return int(m.count) * m.typ.Size() }

// answered ends the message with that number as the receiver says.
func (l *line) answered(seq uint64, code uint8, typ op.Type, count uint64) {
	s := l.drop(seq)
	if s == nil {
		return
	}
	switch code {
	case takenWell:
		s.end(nil)
	case takenNot:
		s.end(differs("it wants", l.to, typ, count, "here", s.typ, s.count))
	case takenClosed:
		s.end(call.NewFault(call.Closed, l.to, ""))
	default:
		s.end(call.NewFault(call.Aborted, l.to, "the receiver has given the message up"))
	}
}

// drop forgets the message with that number, nil if there is none.
func (l *line) drop(seq uint64) *Sending {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.out[seq]
	if s != nil {
		l.settle(s)
	}
	return s
}

// settle forgets s. l.mu is held.
func (l *line) settle(s *Sending) {
	delete(l.out, s.seq)
	if s.eager {
		l.credit -= s.bytes()
	}
}

// cancel gives s up, unless it is being received, or complete.
func (l *line) cancel(s *Sending) {
	if !s.isOver() && l.takeBack(s, takenWell) {
		s.end(&call.Fault{Code: call.Canceled, Peer: -1, Own: true})
	}
}

// revoke tells the receiver that s, which has ended, does not come.
func (l *line) revoke(s *Sending) { l.takeBack(s, takenFailed) }

// takeBack takes s back if it is still here, or waits in the box of a rank of this process. Else it asks the receiver, which cannot
// refuse where the code is takenFailed.
func (l *line) takeBack(s *Sending, code uint8) bool {
	if l.box != nil {
		seq := l.numberOf(s)
		back := l.box.revoke(s.path, l.from, seq)
		if back {
			l.drop(seq)
		}
		return back
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.out[s.seq] != s:
	case l.unsent(s):
		l.settle(s)
		return true
	case code == takenFailed || !s.eager: // else it is on its way, and complete soon
		l.put(outgoing{f: frame{kind: frameRevoke, path: s.path, seq: s.seq, code: code}})
	}
	return false
}

// numberOf is the number of s, 0 while it has none.
func (l *line) numberOf(s *Sending) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return s.seq
}

// unsent takes the head of s back, and reports whether it was still here. l.mu is held.
func (l *line) unsent(s *Sending) bool {
	for i := range l.queue {
		if l.queue[i].s == s && l.queue[i].f.kind == frameHead {
			l.queue = append(l.queue[:i:i], l.queue[i+1:]...)
			return true
		}
	}
	return false
}

// answers reports whether the receiver answers what it is sent.
func (l *line) answers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.box != nil || l.stream != nil
}

// put queues a frame. l.mu is held.
func (l *line) put(out outgoing) {
	l.queue = append(l.queue, out)
	switch {
	case l.stream == nil && !l.dialing:
		l.dialing = true
		l.office.run(l.dial)
	case l.stream != nil && !l.writing:
		l.writing = true
		l.office.run(l.write)
	}
}

// dial connects the line. It tries until it has, or nothing is to be sent any more.
func (l *line) dial() {
	wait := backoff.Sleep{First: 200 * time.Microsecond, Most: 20 * time.Millisecond}
	for {
		ctx, cancel := context.WithTimeout(l.office.ctx, dialTime)
		s, err := l.office.way.Dial(ctx, l.from, l.to)
		cancel()
		if err == nil && !l.office.keep(s, nil) {
			s.Close()
			err = errOfficeClosed
		}
		l.mu.Lock()
		l.err = err
		if err == nil {
			l.stream, l.dialing, l.writing = s, false, true
			l.office.run(func() { l.read(s) })
			l.mu.Unlock()
			l.write()
			return
		}
		if l.queue = l.wanted(); len(l.queue) == 0 || l.office.ctx.Err() != nil {
			l.dialing = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		wait.Next()
	}
}

// dialTime is how long one attempt to connect may take.
const dialTime = 10 * time.Second

var errOfficeClosed = errors.New("the job has ended here")

// wanted is what of the queue somebody still waits for: of what has not been sent, nobody is to be told
// more. l.mu is held.
func (l *line) wanted() (queue []outgoing) {
	for _, o := range l.queue {
		if o.s == nil {
			continue
		}
		if !o.s.isOver() {
			queue = append(queue, o)
			continue
		}
		if l.out[o.s.seq] == o.s {
			l.settle(o.s)
		}
	}
	return queue
}

// write writes what is queued.
func (l *line) write() {
	buf := make([]byte, frameBytes+pieceMost)
	for {
		l.mu.Lock()
		stream := l.stream
		if len(l.queue) == 0 || stream == nil {
			l.writing = false
			l.mu.Unlock()
			return
		}
		out := l.queue[0]
		l.queue[0] = outgoing{}
		l.queue = l.queue[1:]
		l.mu.Unlock()
		n, more := l.encode(&out, buf)
		if n == 0 {
			if out.f.kind == frameHead { // the receiver has not heard of it
				l.drop(out.s.seq)
			}
			continue
		}
		if _, err := stream.Write(buf[:n]); err != nil {
			l.lost(stream, err)
			continue
		}
		switch {
		case more: // behind what else there is
			l.mu.Lock()
			l.queue = append(l.queue, out)
			l.mu.Unlock()
		case out.f.kind == frameHead && out.s.eager:
			out.s.end(nil)
		}
	}
}

// encode writes out to buf, or one piece of it: then there is more. What nobody waits for any more is
// nothing.
func (l *line) encode(out *outgoing, buf []byte) (n int, more bool) {
	f, s := &out.f, out.s
	if s == nil {
		f.encode(buf)
		return frameBytes, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return 0, false
	case f.kind == frameData:
		n = copy(buf[frameBytes:], s.mem[out.at:])
		out.at += n
	case s.eager:
		n = copy(buf[frameBytes:], s.mem)
	case l.office.way.Reads(l.to):
		f.pid, f.at = l.office.pid, uint64(uintptr(unsafe.Pointer(unsafe.SliceData(s.mem))))
		f.word, f.number = uint64(uintptr(unsafe.Pointer(&s.number))), s.number.Load()
	}
	f.n = uint32(n)
	f.encode(buf)
	return frameBytes + n, f.kind == frameData && out.at < len(s.mem)
}

// read takes the receiver's answers. It waits for nothing else: see the package comment.
func (l *line) read(s *auth.Stream) {
	in, buf := bufio.NewReader(s), make([]byte, frameBytes)
	var f frame
	for {
		if err := readFrame(in, buf, &f); err != nil {
			l.lost(s, err)
			return
		}
		switch f.kind {
		case frameTaken:
			l.answered(f.seq, f.code, f.typ, f.count)
		case frameRevoked:
			if m := l.drop(f.seq); m != nil {
				m.end(&call.Fault{Code: call.Canceled, Peer: -1, Own: true})
			}
		case frameGo:
			l.mu.Lock()
			if m := l.out[f.seq]; m != nil && !m.eager && m.count > 0 && !m.isOver() {
				l.put(outgoing{f: frame{kind: frameData, path: m.path, typ: m.typ, seq: f.seq}, s: m})
			} else { // given up meanwhile
				l.put(outgoing{f: frame{kind: frameRevoke, seq: f.seq, code: takenFailed}})
			}
			l.mu.Unlock()
		default:
			l.lost(s, errFrame)
			return
		}
	}
}

// lost ends what the receiver has not answered, since the stream to it has ended.
func (l *line) lost(s *auth.Stream, err error) {
	s.Close()
	l.office.unkeep(s)
	l.mu.Lock()
	if l.stream != s {
		l.mu.Unlock()
		return
	}
	ended := l.out
	l.stream, l.out, l.queue, l.credit = nil, map[uint64]*Sending{}, nil, 0
	l.mu.Unlock()
	for _, m := range ended {
		time.AfterFunc(lostGrace, func() { m.end(lostWith(l.to, err)) })
	}
}
