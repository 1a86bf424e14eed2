package boot

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/lived"
	"github.com/goccl/goccl/internal/simhost"
)

// hostRelay connects the ranks of a host to rank 0, which so has one connection per host at most.
// The ranks meet at a socket that never leaves the host, and the first to come is the relay. Any
// rank will do, and several relays do no harm: a relay passes all frames on and only counts
// confirmations. In a large job relays of other hosts may come to it as well: see tree.
type hostRelay struct {
	hostServer
	dial   dialUp
	cancel context.CancelFunc // ends dial

	root    chan rootEvent
	up      *auth.Stream // nil until dial has succeeded
	out     []byte       // frames for up
	secret  auth.Secret
	addr    netip.Addr
	settled bool     // the verdict is here: nobody more is let in
	busy    bool     // something went up whose answer is due
	watched bool     // a watch went up for this round
	joins   []*child // in the order in which they went up
	final   []byte   // how it ended, if it failed
	owed    int      // confirmations due to rank 0 once all here have confirmed
}

// dialUp finds rank 0, or the relay through which that is reached. door opens a way for others to
// this relay, on the interface that has that address.
type dialUp func(ctx context.Context, door openDoor) (*auth.Stream, point, error)

type openDoor func(ctx context.Context, on net.Addr, secret auth.Secret) (port uint16)

// rootEvent is something that came from rank 0's direction.
type rootEvent struct {
	conn  *auth.Stream // dial has succeeded
	point point
	frame []byte // as it came, head and all
	err   *Error // dial or the connection has failed
}

// startHostRelay serves this host on l, which may be nil where its ranks cannot meet,
// and returns the connection of this process's rank.
func startHostRelay(ctx context.Context, self join, job string, secret auth.Secret, l net.Listener,
	dial dialUp) (*hostRelay, *auth.Stream) {
	r := &hostRelay{hostServer: newHostServer(self, job), dial: dial, root: make(chan rootEvent)}
	// Early enough for its verdict to be read in time by the ranks of this host.
	r.held.own.of, r.held.late.of = simhost.Of(ctx), simhost.Of(ctx)
	d, _ := lived.Left(ctx)
	ctx, r.cancel = lived.Within(ctx, d-min(d/10, grace))
	conn := r.attach()
	if l != nil {
		r.listen(l, secret)
	}
	r.wg.Go(r.loop)
	r.wg.Go(func() { r.follow(ctx) })
	return r, conn
}

// door lets in relays of other hosts, where the job is so large that they may be sent here. Without
// one this relay has no branches.
func (r *hostRelay) door(ctx context.Context, on net.Addr, secret auth.Secret) (port uint16) {
	ip := addrOf(on)
	if r.tree.most == 0 || !ip.IsValid() {
		return 0
	}
	if port = r.doors.portOn(ip); port != 0 {
		return port
	}
	l, err := inet.ListenAt(simhost.Of(ctx), net.JoinHostPort(ip.String(), "0"))
	if err != nil {
		return 0
	}
	r.listen(l, secret)
	return r.doors.portOn(ip)
}

// follow finds rank 0 and reads what it says.
func (r *hostRelay) follow(ctx context.Context) {
	conn, p, err := r.dial(ctx, r.door)
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
		f, err := readFrame(in, max(maxTable(r.self.Size), maxVerdict))
		if err != nil {
			e := fault(Lost, "the connection to rank 0 (%v) was lost", p.who)
			if p.who.Rank != 0 {
				e = fault(Lost, "the connection to rank %d (%v), through which this host reaches rank 0, was lost", p.who.Rank,
					p.who)
			}
			e.Peer, e.Err = p.who.Rank, err
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
	var patience <-chan time.Time // ends once others have had the time to confirm how it failed
	over := false
	confirmed := func() bool { // all ranks behind this relay have what was sent, or had the time for it
		return over || r.unacked == 0 && (r.final == nil || r.allTold())
	}
	defer r.held.own.clear()
	defer r.held.late.clear()
	for {
		if r.final != nil && patience == nil {
			patience = time.After(r.held.own.until(confirmLimit))
		}
		select {
		case e := <-r.events:
			r.handle(e)
		case e := <-r.root:
			r.answer(e)
		case <-patience:
			over = true
		case <-r.held.late.over():
			r.flush()
			r.release()
		case <-r.done:
			return
		}
		if confirmed() || len(r.events) == 0 || len(r.out) > maxUp {
			r.flush()
		}
		if confirmed() {
			r.release() // after the flush: rank 0 may wait for what went up, and this process may be about to end
		}
		if confirmed() { // by its own rank too
			for ; r.owed > 0; r.owed-- {
				r.send(frame{kind: frameAck})
			}
			r.flush()
		}
	}
}

// allTold reports whether all that have been let in, and may know no other way to rank 0, have heard how it ended.
func (r *hostRelay) allTold() bool {
	if r.coming.Load() > 0 {
		return false
	}
	for ch := range r.children {
		if ch != r.local && !ch.told {
			return false
		}
	}
	return true
}

// handle passes on what the ranks of this host send.
func (r *hostRelay) handle(e event) {
	switch e.kind {
	case eventCame, eventFailed:
		r.came(e.child)
	case eventGone:
		r.gone(e.child)
		for _, rank := range e.child.behind() {
			r.send(leaving(rank, &Error{Code: Lost, Peer: e.child.who.Rank}))
		}
	case eventChanged:
		for _, rank := range e.child.behind() {
			r.send(leaving(rank, changed(e.child.who, r.self)))
		}
	case eventFrame:
		switch f := e.frame; f.kind {
		case frameAck:
			r.acked(e.child)
		case frameJoin, frameValue, frameLeave:
			r.pass(e.child, f)
		case frameWatch:
			if !r.watched || r.final != nil { // else the answer comes without asking
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
	case r.final != nil && ch == r.local:
		r.held.frames = append(r.held.frames, r.final)
		return
	case r.final != nil:
		if !ch.told { // else it is on its way
			r.hostServer.send(ch, r.final)
		}
		return
	case f.kind == frameJoin && r.settled:
		// It has slipped in behind the verdict: it has to ask rank 0 itself.
		if !ch.told {
			r.hostServer.send(ch, verdict{Peer: -1}.frame())
		}
		return
	case f.kind == frameJoin:
		ch.ranks[f.rank] = struct{}{}
		r.joins = append(r.joins, ch)
		if j, err := parseJoin(f.data); err == nil && ch == r.local {
			r.held.own.after(j.Left)
		}
	case f.kind == frameValue && ch == r.local && len(f.data) >= valueHead:
		r.held.own.after(binary.BigEndian.Uint32(f.data))
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

// send sends a frame towards rank 0, with the next flush.
func (r *hostRelay) send(f frame) { r.out = f.append(r.out) }

// flush sends what there is for rank 0, once that has been found: many frames at once where many ranks have sent them.
func (r *hostRelay) flush() {
	if r.up == nil || len(r.out) == 0 {
		return
	}
	r.up.Write(r.out) // an error shows where the answer is read
	if r.out = r.out[:0]; cap(r.out) > 4*maxUp {
		r.out = nil
	}
}

// answer passes on what rank 0 sends.
func (r *hostRelay) answer(e rootEvent) {
	switch {
	case e.conn != nil:
		r.up, r.secret, r.addr = e.conn, e.point.secret, addrOf(e.conn.LocalAddr())
	case e.err != nil && r.final != nil: // rank 0 may go once it has said how it ended
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
		r.held.own.clear()
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
	r.doors.deafen()
	v, err := parseVerdict(b[frameHead:])
	if err != nil || v.Code != 0 {
		r.final = b
		broadcastFailure(&r.hostServer, b)
		return
	}
	for _, ch := range r.joins[:min(max(v.Taken, 0), len(r.joins))] {
		ch.taken++
	}
	here := v
	here.Secret = r.secret.Bytes()
	// Rank 0's own host may reach it by loopback; then rank 0 knows better.
	if !v.Addr.IsValid() || !r.addr.IsLoopback() {
		here.Addr = r.addr
	}
	r.broadcast(func(ch *child) []byte {
		to := v // another host's relay, which has the secret, and an address of its own
		if ch.within {
			to = here
		}
		to.Taken = ch.taken
		return to.frame()
	})
}

// fail tells this host what rank 0 can no longer tell it.
func (r *hostRelay) fail(e *Error) {
	r.settled = true
	r.doors.deafen()
	r.final = verdictOf(e).frame()
	broadcastFailure(&r.hostServer, r.final)
}

func (r *hostRelay) close() {
	r.cancel()
	r.hostServer.close()
}
