package mail

import (
	"bufio"
	"cmp"
	"errors"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
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
	last    uint64              // the number of the last message that the receiver has been told of
	out     map[uint64]*Sending // those of them that it has not answered
	credit  int                 // bytes that it keeps
	streams streams
	cut     map[*Account]bool // of whose messages some may be lost: no later one may come in their place
	queue   []outgoing
	writing bool
}

// streams are what a line is connected by, one after the other. The line's lock guards them.
type streams struct {
	now     *auth.Stream // nil: not connected
	n       uint64       // how many there have been
	unsure  uint64       // the first message that may not have come by those before; 0 if all have, as far as was answered
	dialing bool
	err     error // why it is not connected
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
	if s.isOver() || l.cut[s.acct] { // it ends with the Comm
		l.mu.Unlock()
		return
	}
	if n := s.bytes(); s.path.Use.eager() && n <= eagerMost && l.credit+n <= creditMost {
		s.eager = true
		l.credit += n
	}
	if l.box != nil {
		l.number(s)
		l.mu.Unlock()
		l.handOver(s)
		return
	}
	l.put(outgoing{f: frame{kind: frameHead, path: s.path, typ: s.typ, count: s.count}, s: s})
	l.mu.Unlock()
}

// number gives s, which the receiver is told of next, its number. Each follows the one before. l.mu is held.
func (l *line) number(s *Sending) {
	l.last++
	s.seq = l.last
	l.out[s.seq] = s
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
	s.end(nil) // not before: whoever waits for that may send the next message
}

// copyOver copies what s has to where r wants it, piece by piece: whatever ends one of them waits for a piece
// at most.
func (l *line) copyOver(s *Sending, r *Receiving) {
	for at, n := 0, s.bytes(); ; {
		size := min(n-at, readMost)
		s.mu.Lock()
		there := !s.over
		well := there && r.copyIn(s.mem[at:at+size])
		s.mu.Unlock()
		at += size
		switch {
		case !there:
			l.drop(s.seq)
			r.again()
			return
		case !well || at == n:
			l.answered(s.seq, r.received(well), 0, 0)
			return
		}
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
	case takenLeft:
		if inject.Wrong("mail.word") {
			s.end(call.NewFault(call.Aborted, l.to, "the receiver has given the message up"))
		}
		s.end(call.NewFault(call.Canceled, l.to, "its receive ended before the message had come whole"))
	} // else the Comm has failed there, and s ends with it
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
	l.release(s)
}

// release gives back what of the credit s has, whose payload the receiver does not keep. l.mu is held.
func (l *line) release(s *Sending) {
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

// takeBack takes s back if it is still here, or waits in the box of a rank of this process. Else it asks
// the receiver, which cannot refuse where the code is takenFailed.
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
	case l.unsent(s):
		l.release(s)
		return true
	case s.seq == 0: // cut off
		return true
	case l.out[s.seq] != s:
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

// answers reports whether the receiver is there to answer s.
func (l *line) answers(s *Sending) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.box != nil || l.streams.now != nil && !l.cut[s.acct]
}

// put queues a frame. l.mu is held.
func (l *line) put(out outgoing) {
	l.queue = append(l.queue, out)
	l.start()
}

// start has what is queued written. l.mu is held.
func (l *line) start() {
	switch c := &l.streams; {
	case c.now == nil && !c.dialing:
		c.dialing = true
		l.office.run(l.dial)
	case c.now != nil && !l.writing:
		l.writing = true
		s := c.now
		l.office.run(func() { l.write(s) })
	}
}

// dial connects the line. It tries until it has, or nothing is to be sent any more.
func (l *line) dial() {
	wait := backoff.Sleep{First: 200 * time.Microsecond, Most: 20 * time.Millisecond}
	l.mu.Lock()
	broke := l.streams.unsure != 0
	l.mu.Unlock()
	if broke { // the next one may, too
		wait.Next()
	}
	for {
		s, err := l.office.way.Dial(l.office.ctx, l.from, l.to)
		if err == nil && !l.office.keep(s, nil) {
			s.Close()
			err = errOfficeClosed
		}
		l.mu.Lock()
		if l.streams.err = err; err == nil {
			l.begin(s)
			l.mu.Unlock()
			l.write(s)
			return
		}
		if l.queue = l.wanted(); len(l.queue) == 0 || l.office.ctx.Err() != nil {
			l.streams.dialing = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		wait.Next()
	}
}

// begin makes s the line's stream. What it says first has the receiver find what did not come by those
// before. l.mu is held.
func (l *line) begin(s *auth.Stream) {
	c := &l.streams
	c.now, c.dialing, l.writing = s, false, true
	c.n++
	first := frame{kind: frameBegin, seq: l.last + 1, count: cmp.Or(c.unsure, l.last+1), number: c.n}
	l.queue = slices.Insert(l.queue, 0, outgoing{f: first})
	l.office.run(func() { l.read(s) })
}

var errOfficeClosed = errors.New("the job has ended here")

// wanted is what of the queue somebody still waits for: of what has not been sent, nobody is to be told
// more. l.mu is held.
func (l *line) wanted() (queue []outgoing) {
	for _, o := range l.queue {
		switch {
		case o.s == nil || o.f.kind != frameHead:
		case o.s.isOver() || l.cut[o.s.acct]:
			l.release(o.s)
		default:
			queue = append(queue, o)
		}
	}
	return queue
}

// write writes what is queued, as long as s is the line's stream.
func (l *line) write(s *auth.Stream) {
	mem := l.office.pieces.Get().(*[frameBytes + pieceMost]byte)
	defer l.office.pieces.Put(mem)
	buf := mem[:]
	for {
		l.mu.Lock()
		if l.streams.now != s {
			l.mu.Unlock()
			return
		}
		if len(l.queue) == 0 {
			l.writing = false
			l.mu.Unlock()
			return
		}
		out := l.queue[0]
		l.queue[0] = outgoing{}
		l.queue = l.queue[1:]
		n, more := l.encode(&out, buf)
		if n == 0 {
			continue
		}
		if inject.Cut("mail.send") { // the kernel takes it, and then the connection is reset
			s.Close()
		} else if _, err := s.Write(buf[:n]); err != nil {
			l.lost(s, err)
			return
		}
		switch {
		case more: // behind what else there is
			l.mu.Lock()
			if l.streams.now == s {
				l.queue = append(l.queue, out)
			}
			l.mu.Unlock()
		case out.f.kind == frameHead && out.s.eager:
			out.s.end(nil)
		}
	}
}

// encode writes out to buf, or one piece of it: then there is more. What nobody waits for any more is
// nothing. l.mu is held, until it is known what out is: a head that has its number is written.
func (l *line) encode(out *outgoing, buf []byte) (n int, more bool) {
	f, s := &out.f, out.s
	if s == nil {
		l.mu.Unlock()
		f.encode(buf)
		return frameBytes, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	head := f.kind == frameHead
	switch {
	case s.over && head: // the receiver knows nothing of it
		l.release(s)
	case head:
		l.number(s)
		f.seq = s.seq
	}
	l.mu.Unlock()
	switch {
	case s.over:
		return 0, false
	case !head:
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
	return frameBytes + n, !head && out.at < len(s.mem)
}

// read takes the receiver's answers. It waits for nothing else: see the package comment.
func (l *line) read(s *auth.Stream) {
	in, buf := bufio.NewReader(s), make([]byte, frameBytes)
	var f frame
	for first := true; ; first = false {
		if err := readFrame(in, buf, &f); err != nil {
			l.lost(s, err)
			return
		}
		if first { // the receiver has found nothing missing as s began
			l.mu.Lock()
			if l.streams.now == s {
				l.streams.unsure = 0
			}
			l.mu.Unlock()
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

// lost ends s, the stream to the receiver. What has not been answered may be lost, also if its sender has
// had success by now: from here on nothing of its Comm is sent, and the Comm fails. The rest, with which
// nothing is wrong, goes by another stream.
func (l *line) lost(s *auth.Stream, err error) {
	s.Close()
	l.office.unkeep(s)
	l.mu.Lock()
	if l.streams.now != s {
		l.mu.Unlock()
		return
	}
	l.streams.now = nil
	if l.streams.unsure == 0 {
		l.streams.unsure = l.last + 1
	}
	var ended []pending
	for seq, m := range l.out {
		if l.streams.unsure = min(l.streams.unsure, seq); l.cut == nil {
			l.cut = map[*Account]bool{}
		}
		if !m.acct.isSilent() { // else nothing would take it out of l.cut again
			l.cut[m.acct] = true
		}
		l.settle(m)
		ended = append(ended, m)
	}
	if l.queue = l.wanted(); len(l.queue) > 0 {
		l.start()
	}
	l.mu.Unlock()
	cutOff(ended, l.to, brokeWith(l.from, l.to, err))
}
