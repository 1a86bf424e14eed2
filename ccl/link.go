package ccl

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/internal/op"
)

// AnySource is the peer of a Link that receives from any rank, as MPI_ANY_SOURCE.
const AnySource = -1

// Link carries messages between this rank and one other, beside the calls of a Comm: they have no place
// in its order, and no other rank takes part in them. Links are values, made for nothing; ranks connect
// when the first message wants it. Any goroutine may use a Link, whatever the Comm is doing.
//
// A message is received by a receive of the same Comm, tag and sender, and of the same type and count.
// Messages of one rank with one tag are received in the order in which they were sent, and by receives
// in the order in which those were posted. There is no order between tags or between senders. A
// receive from AnySource takes whichever message came first; two of the same sender stay in order.
//
// A message of at most 16 KiB is complete for its sender once it is on its way, unless a MiB of them waits for the
// receiver already. Any other is complete once it has been received. Its memory is the message's until then.
//
// A message has Options.Timeout, or what Within says, in time for which the process is not stopped. If
// it takes longer it ends with ErrTimeout, and c goes on. A receive that ends so has taken no message,
// unless that was being received: then its sender gets ErrCanceled, and the receiver in Peer. A message
// whose sender gives it up while it is received leaves its receive waiting as before; but if a later
// message was received meanwhile that the receive could have had, it ends with ErrCanceled, and the
// sender in Peer.
//
// All messages fail with c, as when a rank is lost, which is then named. c fails, with ErrBackend, if
// the connection for messages between two ranks breaks although both live, and a message of c may be
// lost. After a rank has closed c, what it has sent can still be received; any other message to or from
// it ends with ErrClosed and the rank in Peer. Once all other ranks have closed c, so does a receive from
// AnySource for which no message is there, also of this rank itself, with -1 in Peer. A message of another
// type or count ends with ErrMismatch, at both ends if its sender still waits.
type Link struct {
	c         *Comm
	peer, tag int
	within    time.Duration
	err       *Error
}

// LinkTo returns the Link of c's rank here to peer, which may be this rank, with a tag, which is not
// negative. With AnySource it is a Link that can only receive.
func LinkTo(c *Comm, peer, tag int) Link {
	l := Link{c: c, peer: peer, tag: tag}
	switch {
	case c.isNil():
		l.err = refuseNone("LinkTo")
	case tag < 0:
		l.err = l.c.refuse("LinkTo", ErrArgument, fmt.Errorf("the tag is %d; tags are 0 and more", tag))
	case peer != AnySource && (peer < 0 || peer >= c.Size()):
		l.err = l.c.refuse("LinkTo", ErrArgument, op.NoRank(call.Send, peer, c.Size()))
	}
	return l
}

// Within returns l for messages that take at most d. A d of 0 is Options.Timeout.
func (l Link) Within(d time.Duration) Link {
	if l.within = d; d < 0 && l.err == nil {
		l.err = l.c.refuse("Within", ErrArgument, fmt.Errorf("the limit is %v; 0 is Options.Timeout", d))
	}
	return l
}

// Send sends src. It does not wait. src is not to be written until the Message is complete.
func (l Link) Send(src Buf) Message {
	const op = "Send"
	if l.err == nil && l.peer == AnySource {
		l.err = l.c.refuse(op, ErrArgument, errors.New("a message has one receiver; AnySource is for Recv"))
	}
	what, a, e := l.what(op, &src)
	if e != nil {
		return Message{err: e}
	}
	return Message{c: l.c, of: a.Send(what, l.c.eng.World(l.peer))}
}

// Recv receives to dst, all of it. It does not wait.
func (l Link) Recv(dst Buf) Message {
	what, a, e := l.what("Recv", &dst)
	if e != nil {
		return Message{err: e}
	}
	from := mail.Any
	if l.peer != AnySource {
		from = l.c.eng.World(l.peer)
	}
	return Message{c: l.c, of: a.Recv(what, from)}
}

// what is a message of b, and this rank's mail.
func (l *Link) what(name string, b *Buf) (mail.What, *mail.Account, *Error) {
	switch {
	case l.err != nil:
		e := *l.err
		e.Op = name
		return mail.What{}, nil, &e
	case l.c == nil:
		return mail.What{}, nil, refuseNone(name)
	case l.c.life.shut():
		return mail.What{}, nil, l.c.refuse(name, ErrClosed, whyShut())
	case b.mem != nil:
		return mail.What{}, nil, l.c.refuse(name, ErrUnsupported, errors.New("messages of a Link are in host memory"))
	case b.count < 0 || b.typ == TypeNone:
		return mail.What{}, nil, l.c.refuse(name, ErrArgument, errors.New("the Buf is no memory of a message"))
	}
	a, err := l.c.life.letters.open(l.c)
	if err != nil {
		return mail.What{}, nil, l.c.refuse(name, ErrBackend, err)
	}
	size := b.count * b.typ.Size()
	return mail.What{Tag: int64(l.tag), Type: op.Type(b.typ), Count: b.count, Mem: unsafe.Slice((*byte)(b.host), size),
		Within: l.within}, a, nil
}

// Message is one message of a Link, on its way. The zero Message is complete.
type Message struct {
	c   *Comm
	of  letter // a *mail.Sending or a *mail.Receiving
	err *Error
}

// letter is a message as mail knows it.
type letter interface {
	Done() <-chan struct{}
	Fault() *call.Fault
	Told()
	Then(func())
	Cancel()
}

// settled reports whether m was refused, or is no message.
func (m Message) settled() (bool, error) {
	switch {
	case m.err != nil:
		return true, m.err
	case m.of == nil:
		return true, nil
	case proc.Forked():
		return true, m.c.Err()
	}
	return false, nil
}

// Wait returns when the message is complete, or has failed. If ctx ends first the error is ErrCanceled
// or ErrTimeout and the message goes on: Cancel ends it.
func (m Message) Wait(ctx context.Context) error {
	if err := noContext(ctx, m.c, "Wait"); err != nil {
		return err
	}
	if over, err := m.Test(); over {
		return err
	}
	select {
	case <-m.of.Done():
		return m.result(m.of.Fault())
	case <-ctx.Done():
		return m.c.refuse(m.op(), Code(call.CtxCode(ctx.Err())), ctx.Err())
	}
}

// Test reports whether the message is complete or has failed, without waiting.
func (m Message) Test() (done bool, err error) {
	if over, err := m.settled(); over {
		return true, err
	}
	select {
	case <-m.of.Done():
		return true, m.result(m.of.Fault())
	default:
		return false, nil
	}
}

// OnDone calls f once, with what Wait would return, when the message is complete or has failed. The
// functions of a Comm's messages run one after the other, in the order in which the messages end, on a
// goroutine of their own. So f must be short; it may send and receive.
func (m Message) OnDone(f func(error)) {
	if f == nil {
		return
	}
	if over, err := m.settled(); over {
		callBack(f, err)
		return
	}
	m.of.Then(func() { callBack(f, m.result(m.of.Fault())) })
}

// Cancel gives the message up. Unless it has been matched by then, it ends with ErrCanceled, and
// neither rank notices it any more. If it has, it goes on and ends as it would have.
func (m Message) Cancel() {
	if over, _ := m.settled(); !over {
		m.of.Cancel()
	}
}

// From returns the rank whose message a receive has been given, -1 before that, and of a message that
// is sent.
func (m Message) From() int {
	r, ok := m.of.(*mail.Receiving)
	if !ok {
		return -1
	}
	return cpu.RankOf(m.c.eng, r.Source())
}

func (m Message) op() string {
	if _, ok := m.of.(*mail.Sending); ok {
		return "Send"
	}
	return "Recv"
}

// result is f as an error, which the program is given.
func (m Message) result(f *call.Fault) error {
	if f == nil {
		return nil
	}
	m.of.Told()
	return give(m.c.life.letters.errorOf(m.c, m.op(), f))
}

// letters are the mail of a Comm, once it has some.
type letters struct {
	mu     sync.Mutex
	of     *mail.Account
	failed *call.Fault // with which all messages end
	closed bool        // since the Comm is closed here
}

// open is this rank's mail in c.
func (l *letters) open(c *Comm) (*mail.Account, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		a, err := cpu.OpenMail(c.eng)
		if err != nil {
			return nil, err
		}
		if l.of = a; l.failed != nil { // a message has come while c was being closed, say
			a.End(l.failed, l.closed)
		}
	}
	return l.of, nil
}

// end ends all messages of c, which has failed or, if closed is set, is closed here.
func (l *letters) end(c *Comm, f *call.Fault, closed bool) {
	l.mu.Lock()
	if l.failed == nil {
		l.failed = f
	}
	l.closed = l.closed || closed
	of := l.of
	l.mu.Unlock()
	if of != nil {
		of.End(f, closed)
	} else {
		cpu.ShutMail(c.eng, closed)
	}
}

// untold are the errors of messages that have failed, and of which nobody has been told.
func (l *letters) untold(c *Comm) (errs []*Error) {
	l.mu.Lock()
	of := l.of
	l.mu.Unlock()
	if of == nil {
		return nil
	}
	of.Untold(func(sent bool, why *call.Fault) {
		name := "Recv"
		if sent {
			name = "Send"
		}
		errs = append(errs, l.errorOf(c, name, why))
	})
	return errs
}

// errorOf is f, with which a message of c has ended. Where that is c's own failure, ranks in it are c's.
func (l *letters) errorOf(c *Comm, name string, f *call.Fault) *Error {
	l.mu.Lock()
	own := f == l.failed
	l.mu.Unlock()
	switch failure := c.life.failure.Load(); {
	case own && failure != nil:
		e := *failure
		e.Op = name
		return &e
	case own:
		return c.refused(name, f)
	}
	e := &Error{Code: Code(f.Code), Op: name, Rank: c.Rank(), Peer: cpu.RankOf(c.eng, f.Peer), Err: f.Err}
	for _, w := range f.Missing {
		e.Missing = append(e.Missing, cpu.RankOf(c.eng, w))
	}
	e.told = f.Own // the limit of a message: what waits for it has nothing to answer
	return c.named(e)
}
