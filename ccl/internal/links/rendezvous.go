package links

import (
	"context"
	"math"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/op"
)

// A large message need not go through the pipe, where it is copied twice, if the receiver can reach
// the sender's memory: the record says where the data lie, the receiver copies them from there, and
// the sender waits until it has (rendezvous by reading: Sur, Jin, Chai, Panda, PPoPP 2006). Send
// does so only with what does not fit into the pipe, so that no call waits for the other end that
// otherwise would not.

// rendezvous is what is said of the message under way so, in a cache line of the pipe that both ends write to.
type rendezvous struct {
	State uint64 // offerNumber of the record | one of the following
	from  shm.Span
	// A rank that finds Number at this address of process pid reads the memory of the right process.
	pid, at, Number uint64
}

const (
	offered   = 1 + iota
	Fetched   // the receiver has got the data
	refused   // this message is to go through the pipe
	unread    // as all will
	withdrawn // the sender's call has failed: its memory is its own again
)

// offerNumber is what the state has of the offer that record n makes. It is never 0, which means
// that there is no offer, though numbers of records begin again at 0.
func offerNumber(n uint32) uint64 { return (1<<32 | uint64(n)) << 3 }

var _ [64 - unsafe.Sizeof(rendezvous{})]byte

// rendezvous is that of the pipe.
func (p *pipe) rendezvous() *rendezvous { return (*rendezvous)(unsafe.Pointer(&p.mem[meetAt])) }

// Rendezvous is that of the pipe that r reads.
func (r *pipeReader) Rendezvous() *rendezvous { return r.pipe.rendezvous() }

// Offers reports whether the message goes by rendezvous, as far as the sender knows.
func (c *pairs) Offers(o *Outgoing, k *call.Call) bool {
	n, from := len(o.Left), tuning.ReadMessageFrom
	if op.Ptr(k.Src) == op.Ptr(k.Dst) {
		from = tuning.ReadAsideFrom
	}
	if k.Kind == call.SendRecv && n < from || k.Kind == call.Send &&
		(n <= tuning.PipeMax || n > tuning.ReadRootTo && !o.L.To.crowded) {
		return false
	}
	return !o.piped && !o.L.To.unread
}

// answered finds out what has become of the message, and reports whether anything has.
func (o *Outgoing) answered() bool {
	switch atomic.LoadUint64(&o.L.To.pipe.rendezvous().State) - o.offer {
	case offered:
		return false
	case Fetched:
		o.Done = true
	case unread:
		o.L.To.unread = true
	}
	o.piped, o.offer = true, 0
	return true
}

// Withdraw ends a rendezvous of a call that has failed. If the receiver has come first, it has got the data.
func (o *Outgoing) Withdraw() {
	if o.offer != 0 {
		atomic.CompareAndSwapUint64(&o.L.To.pipe.rendezvous().State, o.offer|offered, o.offer|withdrawn)
		o.offer = 0
	}
}

// answer says what has become of the message that the next record, e, offers, and takes the record. It is false if the
// sender has left its call.
func (r *pipeReader) answer(e *cell, what uint64) bool {
	offer := offerNumber(r.read + 1)
	if !atomic.CompareAndSwapUint64(&r.pipe.rendezvous().State, offer|offered, offer|what) {
		return false
	}
	r.done(e)
	return true
}

// fetchOffered copies a message from where e, the next record, says that it lies, or has it sent through the pipe.
func (c *pairs) fetchOffered(ctx context.Context, i *Incoming, e *cell) *call.Fault {
	r, peer := i.L.From, c.rank.Group.Topology().Local(i.L.peer)
	v := r.pipe.rendezvous()
	from, ours, what := v.from, v.Number == reach.Secret, uint64(Fetched)
	if from.Size == 0 && !ours && !c.canRead(r, v) {
		what = unread
	} else {
		s, f := c.mem.Offered(peer, &from, ours, r.pid)
		if f == nil {
			to := c.rank.Site.Here.Host.SpanOf(i.Left)
			c.mem.ToBeFilled(&to, i.Left)
			f = c.mem.FillFrom(ctx, s, i.Left)
		}
		c.mem.Touched()
		if f == reach.Refused {
			what = refused // this message, which then comes from its beginning
		} else if f != nil {
			return f
		}
	}
	if !r.answer(e, what) {
		return c.gaveUp(ctx, i.L.peer)
	}
	i.Done = what == Fetched
	return nil
}

// gaveUp is why peer has left a call of which it had offered memory. The reason is on its way.
func (c *pairs) gaveUp(ctx context.Context, peer int) *call.Fault {
	w := plane.Waiter{Remote: true} // the peer may live and wait for this rank: nobody would ring
	for over := lived.For(gaveUpGrace); !over(); {
		if f := c.rank.Pause(ctx, &w, peer); f != nil {
			return f
		}
	}
	return c.rank.Stop(call.NewFault(call.Backend, peer, "rank %d has left its call", peer))
}

const gaveUpGrace = 200 * time.Millisecond

// canRead reports whether this process reads the memory of the one at the other end, as it has tried once.
func (c *pairs) canRead(r *pipeReader, v *rendezvous) bool {
	if r.pid == 0 {
		r.pid = -1
		if pid := int32(v.pid); c.rank.Standing.WouldReadMessage(math.MaxInt) && reach.Readable(pid, v.at, v.Number) {
			r.pid = pid
		}
	}
	return r.pid > 0
}
