package mail

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/ordered"
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
	nth      uint64        // among the streams of the two, 0 before it has begun; Office.mu guards it
	last     uint64        // the number of the last message that has come; the reader's, until over
	over     chan struct{} // closed when nothing more is read

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
	var moving []pending
	for _, r := range in.moving {
		moving = append(moving, r)
	}
	in.moving = nil
	in.mu.Unlock()
	close(in.over)
	if errors.Is(err, errLost) {
		in.office.distrust(in.to, in.from, in.broke(err))
	}
	cutOff(moving, in.from, in.broke(err))
}

// broke says that the stream has ended.
func (in *inlet) broke(err error) error { return brokeWith(in.from, in.to, err) }

// errLost says that not all messages have come.
var errLost = errors.New("messages are missing")

// begin makes in the inlet of what comes from now on, in the place of an earlier one.
func (in *inlet) begin(f *frame) error {
	o, of := in.office, [2]int{in.from, in.to}
	o.mu.Lock()
	old := o.inlets[of]
	if f.number == 0 || old != nil && old.nth >= f.number {
		o.mu.Unlock()
		return errFrame // such as one that was broken, and given up by its sender, before it was read
	}
	in.nth, o.inlets[of] = f.number, in
	o.mu.Unlock()
	if old != nil {
		old.stream.Close()
		<-old.over
		in.last = old.last
	}
	// The sender has failed the Comms of what lies between. The rest must have come.
	if f.count > in.last+1 || f.seq <= in.last {
		return fmt.Errorf("%w: %d follows %d, and all before %d were answered", errLost, f.seq, in.last, f.count)
	}
	in.last = f.seq - 1
	return nil
}

// frames reads until the stream ends.
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
		if begins := in.nth == 0; begins != (f.kind == frameBegin) {
			return errFrame
		}
		switch f.kind {
		case frameBegin:
			if err := in.begin(&f); err != nil {
				return err
			}
		case frameHead:
			if f.seq != in.last+1 {
				return fmt.Errorf("%w: %d follows %d", errLost, f.seq, in.last)
			}
			in.last++
			in.arrive(f, body)
		case frameData:
			if err := in.piece(f.seq, body); err != nil {
				return err
			}
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
		cutOff([]pending{r}, in.from, in.broke(io.EOF))
	}
}

// piece takes a piece of a payload.
func (in *inlet) piece(seq uint64, body []byte) error {
	in.mu.Lock()
	r := in.moving[seq]
	in.mu.Unlock()
	if r == nil {
		return nil // given up
	}
	well := r.copyIn(body)
	switch {
	case well && !r.whole():
		return nil
	case !well && !r.isOver(): // more than was said
		return errFrame
	}
	in.mu.Lock()
	delete(in.moving, seq)
	in.mu.Unlock()
	in.taken(seq, r.received(well), 0, 0)
	return nil
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
			in.taken(f.seq, r.received(false), 0, 0)
			return
		}
		left, at = left-n, at+uint64(n)
	}
	switch {
	case read && in.owned(f):
		in.taken(f.seq, r.received(true), 0, 0)
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
	r.got.filled = 0
}

// owned reports whether the memory of the message can be read, and is still the message's. What has been
// read of it before was the message's then: no processor may load the number first.
func (in *inlet) owned(f *frame) bool {
	ordered.Loaded()
	var b [8]byte
	return f.pid <= 1<<31-1 && f.number != 0 && shm.ReadMemory(int32(f.pid), b[:], f.word) == nil &&
		*(*uint64)(unsafe.Pointer(&b)) == f.number
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

// brokeWith says that the stream of messages from one rank to another has ended.
func brokeWith(from, to int, err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, io.EOF):
		err = errors.New("it was closed")
	case errors.As(err, &op): // the news of a failure have room for little more
		err = op.Err
	}
	return fmt.Errorf("the connection for messages from world rank %d to %d broke: %w", from, to, err)
}
