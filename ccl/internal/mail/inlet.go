package mail

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/op"
)

// inlet is the end at which one rank of this process receives what another rank sends.
type inlet struct {
	office   *Office
	from, to int
	box      *Box
	stream   *auth.Stream

	mu      sync.Mutex
	moving  map[uint64]*Receiving // whose payload has been asked for
	queue   []frame
	writing bool
	ended   bool
}

// read takes what the sender sends.
func (in *inlet) read() {
	err := in.frames()
	in.stream.Close()
	in.office.unkeep(in.stream)
	in.mu.Lock()
	in.ended = true
	moving := in.moving
	in.moving = nil
	in.mu.Unlock()
	for _, r := range moving {
		time.AfterFunc(lostGrace, func() { r.end(lostWith(in.from, err)) })
	}
}

func (in *inlet) frames() error {
	r, buf := bufio.NewReaderSize(in.stream, 64<<10), make([]byte, max(frameBytes, pieceMost))
	for {
		var f frame
		if err := readFrame(r, buf, &f); err != nil {
			return err
		}
		var body []byte
		if f.n > 0 {
			body = buf[:f.n]
			if _, err := io.ReadFull(r, body); err != nil {
				return err
			}
		}
		switch f.kind {
		case frameHead:
			in.arrive(f, body)
		case frameData:
			in.piece(f.seq, body)
		case frameRevoke:
			in.revoke(&f)
		case frameBye:
			in.office.left(member{f.path.Comm, in.to}, in.from)
		default:
			return errFrame
		}
	}
}

// arrive delivers a message.
func (in *inlet) arrive(f frame, body []byte) {
	a := &arrival{from: in.from, seq: f.seq, typ: f.typ, count: f.count}
	a.answer = func(code uint8, typ op.Type, count uint64) { in.taken(f.seq, code, typ, count) }
	if body != nil {
		a.body = append([]byte{}, body...)
	} else {
		a.fetch = func(r *Receiving) {
			if f.pid != 0 && in.office.way.Reads(in.from) {
				go in.pull(r, &f)
			} else {
				in.ask(r, f.seq)
			}
		}
	}
	in.box.deliver(f.path, a)
}

// taken answers that a message is received, or is not.
func (in *inlet) taken(seq uint64, code uint8, typ op.Type, count uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.put(frame{kind: frameTaken, code: code, typ: typ, count: count, seq: seq})
}

// ask has the sender send the payload.
func (in *inlet) ask(r *Receiving, seq uint64) {
	in.mu.Lock()
	ended := in.ended
	if !ended {
		in.moving[seq] = r
		in.put(frame{kind: frameGo, seq: seq})
	}
	in.mu.Unlock()
	if ended {
		time.AfterFunc(lostGrace, func() { r.end(lostWith(in.from, io.EOF)) })
	}
}

// piece takes a piece of a payload.
func (in *inlet) piece(seq uint64, body []byte) {
	in.mu.Lock()
	r := in.moving[seq]
	in.mu.Unlock()
	if r == nil {
		return // given up
	}
	well := r.copyIn(body)
	if well && !r.whole() {
		return
	}
	in.mu.Lock()
	delete(in.moving, seq)
	in.mu.Unlock()
	if !well { // given up here, or more has come than was said
		in.taken(seq, takenFailed, 0, 0)
		r.end(lostWith(in.from, errFrame))
		return
	}
	r.end(nil)
	in.taken(seq, takenWell, 0, 0)
}

// revoke gives up a message, unless it has been matched; if its sender cannot wait for that, even then.
func (in *inlet) revoke(f *frame) {
	var r *Receiving
	matched := !in.box.revoke(f.path, in.from, f.seq)
	if matched && f.code == 0 {
		return
	}
	in.mu.Lock()
	if matched {
		r = in.moving[f.seq]
		delete(in.moving, f.seq)
	}
	in.put(frame{kind: frameRevoked, seq: f.seq})
	in.mu.Unlock()
	if r != nil {
		r.again()
	}
}

// pull reads the payload from the sender's memory, and asks for it where that cannot be.
func (in *inlet) pull(r *Receiving, f *frame) {
	if !in.owned(f) { // the kernel does not allow it, or the message is given up, as the sender says if it is asked
		in.ask(r, f.seq)
		return
	}
	read, left := true, r.bytes()
	for at := f.at; left > 0 && read; {
		n := min(left, readMost)
		wanted := r.fill(n, func(dst []byte) bool {
			read = shm.ReadMemory(int32(f.pid), dst, at) == nil
			return read
		})
		if read && !wanted {
			in.taken(f.seq, takenFailed, 0, 0)
			return
		}
		left, at = left-n, at+uint64(n)
	}
	switch {
	case read && in.owned(f):
		r.end(nil)
		in.taken(f.seq, takenWell, 0, 0)
	case in.owned(f): // the kernel reads some of its memory, but not this
		r.rewind()
		in.ask(r, f.seq)
	default:
		r.again()
	}
}

// rewind begins with the first byte.
func (r *Receiving) rewind() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filled = 0
}

// owned reports whether the memory of the message can be read, and is still the message's.
func (in *inlet) owned(f *frame) bool {
	var b [8]byte
	return f.pid <= 1<<31-1 && f.number != 0 && shm.ReadMemory(int32(f.pid), b[:], f.word) == nil && *(*uint64)(unsafe.Pointer(&b)) == f.number
}

// put queues an answer. in.mu is held.
func (in *inlet) put(f frame) {
	if in.ended {
		return
	}
	if in.queue = append(in.queue, f); !in.writing {
		in.writing = true
		in.office.run(in.write)
	}
}

// busy reports whether answers are to be written.
func (in *inlet) busy() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return !in.ended && (in.writing || len(in.queue) > 0)
}

// write writes answers, which the sender always reads.
func (in *inlet) write() {
	var buf [frameBytes]byte
	for {
		in.mu.Lock()
		if len(in.queue) == 0 || in.ended {
			in.writing = false
			in.mu.Unlock()
			return
		}
		f := in.queue[0]
		in.queue = in.queue[1:]
		in.mu.Unlock() // writing stays, until all is written
		f.encode(buf[:])
		if _, err := in.stream.Write(buf[:]); err != nil {
			in.stream.Close() // which read finds
			in.mu.Lock()
			in.writing = false
			in.mu.Unlock()
			return
		}
	}
}

// lostWith is the fault of a message to or from rank w, the stream with which has ended.
func lostWith(w int, err error) *call.Fault {
	if errors.Is(err, io.EOF) {
		return call.NewFault(call.RankLost, w, "the stream of messages has ended")
	}
	return call.NewFault(call.RankLost, w, "the stream of messages has ended: %w", err)
}
