package boot

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/goccl/goccl/internal/auth"
)

// hostRelay connects the ranks of a host to rank 0, which so has one connection per host. The ranks
// meet at a socket that never leaves the host, and the first to come is the relay. Any rank will do,
// and several relays do no harm: a relay passes all frames on and only counts confirmations.
type hostRelay struct {
	hostServer
	dial func(ctx context.Context) (*auth.Stream, point, error) // finds rank 0

	ctx    context.Context // of dial
	cancel context.CancelFunc

	root    chan rootEvent
	up      *auth.Stream // nil until dial has succeeded
	queue   []frame      // for up, until then
	secret  []byte
	addr    netip.Addr
	settled bool     // the verdict is here: nobody more is let in
	busy    bool     // something went up whose answer is due
	watched bool     // a watch went up for this round
	joins   []*child // in the order in which they went up
	final   []byte   // how it ended, if it failed
	owed    int      // confirmations due to rank 0 once all here have confirmed
}

// rootEvent is something that came from rank 0's direction.
type rootEvent struct {
	conn  *auth.Stream // dial has succeeded
	point point
	frame []byte // as it came, head and all
	err   *Error // dial or the connection has failed
}

// startHostRelay serves this host on l, which may be nil where its ranks cannot meet,
// and returns the connection of this process's rank.
func startHostRelay(ctx context.Context, self join, job string, secret []byte, l net.Listener,
	dial func(context.Context) (*auth.Stream, point, error)) (*hostRelay, *auth.Stream) {
	r := &hostRelay{hostServer: newHostServer(self, job, secret), dial: dial, root: make(chan rootEvent)}
	// Early enough for its verdict to be read in time by the ranks of this host.
	at, _ := ctx.Deadline()
	r.ctx, r.cancel = context.WithDeadline(ctx, at.Add(-min(time.Until(at)/10, grace)))
	conn := r.attach()
	if l != nil {
		r.listen(l)
	}
	r.wg.Go(r.loop)
	r.wg.Go(func() { r.follow(self.Size) })
	return r, conn
}

// follow finds rank 0 and reads what it says.
func (r *hostRelay) follow(size int) {
	conn, p, err := r.dial(r.ctx)
	if err != nil {
		e := asError(err)
		if e.Code == Canceled {
			e = &Error{Code: Canceled, Peer: r.self.Rank, Text: reason(r.self.Rank, r.self, verdict{Code: Canceled})}
		}
		r.tell(rootEvent{err: e})
		return
	}
	if !r.admit(conn) {
		return
	}
	defer r.forget(conn)
	r.tell(rootEvent{conn: conn, point: p})
	in := bufio.NewReader(conn)
	for {
		f, err := readFrame(in, max(maxTable(size), maxVerdict))
		if err != nil {
			e := fault(Lost, "the connection to rank 0 (%v) was lost", p.who)
			e.Peer, e.Err = 0, err
			if errors.Is(err, auth.ErrChanged) {
				e = changed(p.who, r.self)
				conn.Write(leaving(r.self.Rank, e).encode())
				defer conn.Drain()
			}
			r.tell(rootEvent{err: e})
			return
		}
		r.tell(rootEvent{frame: f.encode()})
	}
}

func (r *hostRelay) tell(e rootEvent) {
	select {
	case r.root <- e:
	case <-r.done:
	}
}

func (r *hostRelay) loop() {
	for {
		select {
		case e := <-r.events:
			r.handle(e)
		case e := <-r.root:
			r.answer(e)
		case <-r.done:
			return
		}
		if r.unacked == 0 {
			// Rank 0 first: it may wait for this, and this process may be about to end.
			for ; r.owed > 0; r.owed-- {
				r.send(frame{kind: frameAck})
			}
			r.release()
		}
	}
}

// handle passes on what the ranks of this host send.
func (r *hostRelay) handle(e event) {
	switch e.kind {
	case eventCame:
		r.came(e.child)
	case eventGone:
		r.gone(e.child)
		for rank := range e.child.ranks {
			r.send(frame{kind: frameLeave, rank: rank, data: lostRank(rank)})
		}
	case eventChanged:
		for rank := range e.child.ranks {
			r.send(leaving(rank, changed(e.child.who, r.self)))
		}
	case eventFrame:
		switch f := e.frame; f.kind {
		case frameAck:
			r.acked(e.child)
		case frameJoin, frameValue, frameLeave:
			r.pass(e.child, f)
		case frameWatch:
			if !r.watched && r.final == nil { // else the answer is here, or comes without asking
				r.watched = true
				r.pass(e.child, f)
			}
		default:
			e.child.conn.Close()
		}
	}
}

func (r *hostRelay) pass(ch *child, f frame) {
	switch {
	case r.final != nil:
		if ch == r.local {
			r.held = append(r.held, r.final)
		} else {
			r.hostServer.send(ch, r.final)
		}
		return
	case f.kind == frameJoin && r.settled:
		// It has slipped in behind the verdict: it has to ask rank 0 itself.
		r.hostServer.send(ch, verdict{Peer: -1}.frame())
		return
	case f.kind == frameJoin:
		ch.ranks[f.rank] = struct{}{}
		r.joins = append(r.joins, ch)
	case f.kind == frameLeave:
		delete(ch.ranks, f.rank)
	}
	r.busy = r.busy || f.kind != frameLeave
	if r.up == nil && f.kind == frameLeave && ch == r.local {
		// The rank of this process gives up before rank 0 was found.
		if v, err := parseVerdict(f.data); err == nil && v.Code != 0 {
			r.fail(&Error{Code: v.Code, Peer: f.rank, Text: reason(f.rank, r.self, v)})
		}
		return
	}
	r.send(f)
}

// send sends a frame towards rank 0.
func (r *hostRelay) send(f frame) {
	if r.up == nil {
		r.queue = append(r.queue, f)
		return
	}
	r.up.Write(f.encode()) // an error shows where the answer is read
}

// answer passes on what rank 0 sends.
func (r *hostRelay) answer(e rootEvent) {
	switch {
	case e.conn != nil:
		r.up, r.secret, r.addr = e.conn, e.point.secret, addrOf(e.conn.LocalAddr())
		for _, f := range r.queue {
			r.send(f)
		}
		r.queue = nil
	case e.err != nil:
		if r.busy || r.up == nil {
			r.fail(e.err)
		} else {
			// The job is over for rank 0, and perhaps for all. The ranks that are not done hear of it before
			// this process, which may end then.
			r.final = verdictOf(e.err).frame()
			for ch := range r.children {
				if ch != r.local {
					r.hostServer.send(ch, r.final)
				}
			}
		}
	default:
		r.busy, r.watched = false, false
		r.owed++
		if e.frame[0] == frameVerdict {
			r.conclude(e.frame)
		} else {
			r.broadcast(func(*child) []byte { return e.frame })
		}
	}
}

// conclude passes a verdict on, with what its receivers on this host need to know.
func (r *hostRelay) conclude(b []byte) {
	r.settled = true
	r.deafen()
	v, err := parseVerdict(b[frameHead:])
	if err != nil || v.Code != 0 {
		r.final = b
		r.broadcast(func(*child) []byte { return b })
		return
	}
	v.Secret = r.secret
	// Rank 0's own host may reach it by loopback; then rank 0 knows better.
	if !v.Addr.IsValid() || !r.addr.IsLoopback() {
		v.Addr = r.addr
	}
	for _, ch := range r.joins[:min(max(v.Taken, 0), len(r.joins))] {
		ch.taken = 1
	}
	r.broadcast(func(ch *child) []byte {
		v.Taken = ch.taken
		return v.frame()
	})
}

// fail tells this host what rank 0 can no longer tell it.
func (r *hostRelay) fail(e *Error) {
	r.settled = true
	r.deafen()
	r.final = verdictOf(e).frame()
	r.broadcast(func(*child) []byte { return r.final })
}

func (r *hostRelay) close() {
	r.cancel()
	r.hostServer.close()
}

func lostRank(rank int) []byte {
	return verdict{Code: Lost, Peer: rank}.frame()[frameHead:]
}
