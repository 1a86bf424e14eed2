package cpu

import (
	"context"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// A large message need not go through the pipe, where it is copied twice, if the receiver can reach the sender's
// memory: the record says where the data lie, the receiver copies them from there, and the sender waits until it has
// (rendezvous by reading: Sur, Jin, Chai, Panda, PPoPP 2006). Send does so only with what does not fit into the pipe, so
// that no call waits for the other end that otherwise would not.

// rendezvous is what is said of the message under way so, in a cache line of the pipe that both ends write to.
type rendezvous struct {
	state uint64 // offerNumber of the record | one of the following
	from  shm.Span
	// Who can read the number there, reads the memory of the right process.
	pid, at, number uint64
}

const (
	offered   = 1 + iota
	fetched   // the receiver has got the data
	refused   // this message is to go through the pipe
	unread    // as all will
	withdrawn // the sender's call has failed: its memory is its own again
)

// offerNumber is what the state has of the offer that record n makes. It is never 0, which means that there is no offer,
// though numbers of records begin again at 0.
func offerNumber(n uint32) uint64 { return (1<<32 | uint64(n)) << 3 }

var _ [64 - unsafe.Sizeof(rendezvous{})]byte

// rendezvous is that of the pipe.
func (p *pipe) rendezvous() *rendezvous { return (*rendezvous)(unsafe.Pointer(&p.mem[meetAt])) }

// offers reports whether the message goes by rendezvous, as far as the sender knows.
func (c *Links) offers(o *outgoing, k *Call) bool {
	n, from := len(o.left), tuning.ReadMessageFrom
	if ptr(k.Src) == ptr(k.Dst) {
		from = tuning.ReadAsideFrom
	}
	if k.Kind == SendRecv && n < from || k.Kind == Send && (n <= tuning.PipeMax || n > tuning.ReadRootTo) {
		return false
	}
	return !o.piped && !o.l.to.unread
}

// offer writes a record that says where the data lie, unless the receiver could not reach them there.
func (c *Links) offer(o *outgoing, k *Call, e *cell) bool {
	p := c.site.host.SpanOf(o.left)
	if p.Size == 0 && c.site.host.Shared() && !c.wouldRead() {
		return false
	}
	c.toBeRead(&p, o.left)
	w := o.l.to
	r := w.rendezvous()
	r.from, r.pid, r.at, r.number = p, ownPID, uint64(uintptr(unsafe.Pointer(&secret))), secret
	o.offer = offerNumber(w.wrote + 1)
	atomic.StoreUint64(&r.state, o.offer|offered)
	o.begin(e, k)
	w.post(e, 0, 0, inCell|recordOffer, o.hash)
	return true
}

// answered finds out what has become of the message, and reports whether anything has.
func (o *outgoing) answered() bool {
	switch atomic.LoadUint64(&o.l.to.rendezvous().state) - o.offer {
	case offered:
		return false
	case fetched:
		o.done = true
	case unread:
		o.l.to.unread = true
	}
	o.piped, o.offer = true, 0
	return true
}

// withdraw ends a rendezvous of a call that has failed. If the receiver has come first, it has got the data.
func (o *outgoing) withdraw() {
	if o.offer != 0 {
		atomic.CompareAndSwapUint64(&o.l.to.rendezvous().state, o.offer|offered, o.offer|withdrawn)
		o.offer = 0
	}
}

// answer says what has become of the message that the next record, e, offers, and takes the record. It is false if the
// sender has left its call.
func (r *pipeReader) answer(e *cell, what uint64) bool {
	offer := offerNumber(r.read + 1)
	if !atomic.CompareAndSwapUint64(&r.rendezvous().state, offer|offered, offer|what) {
		return false
	}
	r.done(e)
	return true
}

// fetchOffered copies a message from where e, the next record, says that it lies, or has it sent through the pipe.
func (c *Links) fetchOffered(ctx context.Context, i *incoming, e *cell) *Fault {
	r, peer := i.l.from, c.topo.Local(i.l.peer)
	v := r.rendezvous()
	from, what := v.from, uint64(fetched)
	var here unsafe.Pointer
	var f *Fault
	switch {
	case from.Size != 0:
		here, f = c.mapped(peer, &from)
	case v.number == secret:
		here, f = c.here(&from)
	case !c.canRead(r, v):
		what = unread
	}
	if f == nil && what == fetched {
		f = c.fillFrom(ctx, peer, here, r.pid, from.At, i.left)
		c.touched()
	}
	if f != nil {
		return f
	}
	if !r.answer(e, what) {
		return c.unread(ctx, peer, errors.New("its call has failed"))
	}
	i.done = what == fetched
	return nil
}

// canRead reports whether this process reads the memory of the one at the other end, as it has tried once.
func (c *Links) canRead(r *pipeReader, v *rendezvous) bool {
	if r.pid == 0 {
		r.pid = -1
		if pid := int32(v.pid); c.wouldRead() && readable(pid, v.at, v.number) {
			r.pid = pid
		}
	}
	return r.pid > 0
}
