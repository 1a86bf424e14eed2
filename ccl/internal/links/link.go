package links

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// ends are a rank's links: pipes to the ranks of its host, connections with those of others.
type ends struct {
	rank *plane.Member
	made map[linkKey]*Link
	rows map[int][]atomic.Uint64 // of the ranks of this host, once mapped: see row

	grown int // of this rank's pipes: see grow
}

// Close ends all of them.
func (c *ends) Close() {
	for _, l := range c.made {
		l.close()
	}
}

// A Link joins this rank with one other, for the messages of one class. It is made
// on first use: a pipe each way inside a host, a TCP connection between hosts.
type Link struct {
	peer  int
	class class
	out   Outlet
	in    Inlet
	conn  *tcp.Conn
	To    *PipeWriter // out and in, to a rank of this host
	From  *pipeReader
	// Messages take turns: one is on its way out, and one on its way in.
	outNext, outTurn, inNext, inTurn uint64
	sent, received                   uint64 // messages of point-to-point calls
}

// Outlet is the end of a link that is written to.
type Outlet interface {
	// TrySend sends what there is room for, and returns how many bytes that was.
	TrySend(b []byte) (int, error)
}

// Inlet is the end of a link that is read from.
type Inlet interface {
	// TryRecv receives what is there, up to len(b) bytes.
	TryRecv(b []byte) (int, error)
	// Peek is up to limit bytes, where they lie or in buf. All of them are taken
	// by Discard before the next Peek.
	Peek(buf []byte, limit int) ([]byte, error)
	// Discard takes the bytes that the last Peek has shown.
	Discard(n int)
}

// Stream is a TCP connection as an inlet.
type Stream struct{ Conn *tcp.Conn }

// TryRecv receives what is there, up to len(b) bytes.
func (s Stream) TryRecv(b []byte) (int, error) { return s.Conn.TryRecv(b) }

// Peek receives up to limit bytes into buf.
func (s Stream) Peek(buf []byte, limit int) ([]byte, error) {
	n, err := s.Conn.TryRecv(buf[:min(limit, len(buf))])
	return buf[:n], err
}

// Discard does nothing: Peek has taken the bytes.
func (s Stream) Discard(int) {}

// The classes of messages: point-to-point calls and collectives do not wait for
// each other, so each has links of its own.
type class uint8

const (
	collective class = iota
	PointToPoint
	confirmations // of point-to-point calls, under CheckStrict
	Agreements    // of Shrink
	classes
)

type linkKey struct {
	peer  int32
	class class
}

// Link returns the link to peer. Of a pipe its inlet is looked for when something is received.
func (c *ends) Link(ctx context.Context, peer int, cl class) (*Link, *call.Fault) {
	key := linkKey{int32(peer), cl}
	if l := c.made[key]; l != nil {
		return l, nil
	}
	l := &Link{peer: peer, class: cl, sent: uint64(c.rank.Order.Start), received: uint64(c.rank.Order.Start)}
	if c.rank.Group.Topology().Node(peer) == c.rank.Group.Topology().Node(c.rank.Group.Rank()) {
		out, err := c.PipeTo(c.rank.Group.Topology().Local(peer), cl)
		if err != nil {
			return nil, c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "%w", err))
		}
		l.out, l.To = out, out
	} else if f := c.dial(ctx, l, cl); f != nil {
		return nil, f
	}
	c.made[key] = l
	return l, nil
}

const (
	endLook  = 100 * time.Millisecond
	endLooks = 10
)

// watchEnd calls cancel once the call under way has gone on for a second after the end of a process. The rank that is
// dialed may have failed for that reason, and then neither answers nor tells the reason again.
func (c *ends) watchEnd(ctx context.Context, cancel func()) {
	t := time.NewTicker(endLook)
	defer t.Stop()
	for looks := 0; looks < endLooks; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if looks++; c.rank.Fate.Outlived() == nil {
			looks = 0
		}
	}
	cancel()
}

// dial connects with a rank of another host.
func (c *ends) dial(ctx context.Context, l *Link, cl class) *call.Fault {
	w := c.rank.Group.World(l.peer)
	addr := c.rank.Site.Job.Net.Addrs.At(w)
	key := tcp.MakeKey(c.rank.Group.ID(), uint32(cl), uint32(c.rank.Group.Rank()), uint32(l.peer))
	dctx, cancel := context.WithCancel(c.rank.Fate.Context())
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	go c.watchEnd(dctx, cancel)
	if t := c.rank.Group.Timeout(); t > 0 {
		var cancel2 context.CancelFunc
		dctx, cancel2 = context.WithTimeout(dctx, t)
		defer cancel2()
	}
	conn, err := c.rank.Site.Job.Net.TCP.OpenUnless(dctx, key, uint32(c.rank.Group.Rank()), addr, c.rank.Site.EndedYet(w))
	if err == nil {
		l.conn, l.out, l.in = conn, conn, Stream{conn}
		return nil
	}
	if f := c.rank.Fate.Cause(); f != nil {
		return f
	}
	if e := ctx.Err(); e != nil {
		return c.rank.Stop(call.CtxFault(e, []int{l.peer}))
	}
	if f := c.rank.Fate.Outlived(); f != nil {
		return c.rank.Stop(f)
	}
	if errors.Is(err, tcp.ErrGone) {
		return c.rank.Stop(call.NewFault(call.Closed, l.peer, ""))
	}
	if errors.Is(err, tcp.ErrRefused) {
		if c.rank.Share.HasLeft(l.peer) || c.rank.Site.LeftInOrder(w) {
			return c.rank.Stop(call.NewFault(call.Closed, l.peer, ""))
		}
		return c.rank.Stop(&call.Fault{Code: call.RankLost, Peer: l.peer, Certain: true, Err: tcp.ErrRefused})
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return c.rank.Stop(&call.Fault{Code: call.Timeout, Peer: l.peer, Missing: []int{l.peer}, Err: err})
	}
	if tcp.IsOwnTrouble(err) { // which the peer is not to blame for
		return c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "cannot connect with rank %d: %w", l.peer, err))
	}
	return c.rank.Stop(call.NewFault(call.Backend, l.peer, "cannot reach rank %d at %v: %w", l.peer, addr, err))
}

// Ready makes sure of l's inlet. It is false while a peer of this host has not
// made its pipe.
func (c *ends) Ready(l *Link) (bool, *call.Fault) {
	if l.in != nil {
		return true, nil
	}
	p, err := c.PipeFrom(c.rank.Group.Topology().Local(l.peer), l.class)
	if err != nil {
		return false, c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "%w", err))
	}
	if p == nil {
		return false, nil
	}
	p.join(l.To)
	l.in, l.From = p, p
	return true, nil
}

func (l *Link) close() {
	if l.conn != nil {
		l.conn.Close()
	}
}

// broken reports that the stream with peer ended. Often that is the echo of another
// failure, whose report is on its way: it gets a moment to arrive.
func (c *ends) broken(peer int, err error) *call.Fault {
	if errors.Is(err, errUnmapped) {
		return c.unmapped(peer)
	}
	if errors.Is(err, tcp.ErrChanged) {
		return c.rank.Stop(call.NewFault(call.Backend, peer, "%w from rank %d to rank %d (GOCCL_WIRE)", err, peer, c.rank.Group.Rank()))
	}
	if f := c.reported(peer); f != nil {
		return f
	}
	if f := c.rank.Fate.Outlived(); f != nil {
		return c.rank.Stop(f)
	}
	if c.rank.Share.HasLeft(peer) || c.hasClosed(peer) || c.rank.Site.LeftInOrder(c.rank.Group.World(peer)) {
		return c.rank.Stop(call.NewFault(call.Closed, peer, ""))
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("its process ended")
	}
	return c.rank.Stop(&call.Fault{Code: call.RankLost, Peer: peer, Err: err})
}

// reported waits a moment for the report of a failure, or for peer to have left in good order.
func (c *ends) reported(peer int) *call.Fault {
	for range 30 {
		if f := c.rank.Fate.Cause(); f != nil {
			return f
		}
		if peer >= 0 && c.rank.Site.KnownLeft(c.rank.Group.World(peer)) || c.rank.Fate.Outlived() != nil {
			return nil
		}
		c.rank.Site.Scan()
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// farewell is why peer leaves, if that is what h says.
func (c *ends) farewell(h *head, peer int) *call.Fault {
	switch h.kind {
	case messageBye:
		f := call.NewFault(call.Closed, peer, "")
		if last := h.record; last.Kind != 0 {
			f.Theirs = &last
		}
		return f
	case messageFailed:
		if h.step == 0 || h.step > uint32(call.Closed) {
			return call.NewFault(call.RankLost, peer, "")
		}
		return c.hearsay(call.Code(h.step), int(h.record.Root), peer)
	}
	return nil
}

// hearsay is the failure that peer leaves with, as it says, and for which it blames that rank. What peer says of itself is
// believed, and that it blames this one, to which it is the other that differs. Of a third rank only the control plane is: peer
// has told that, too, if it is true, so the report is on its way.
func (c *ends) hearsay(code call.Code, blamed, peer int) *call.Fault {
	third := blamed != peer && blamed != c.rank.Group.Rank()
	if third || code == call.Mismatch { // the report says more
		if f := c.reported(peer); f != nil {
			return f
		}
	}
	if !third {
		return call.NewFault(code, peer, "")
	}
	if f := c.rank.Fate.Outlived(); f != nil {
		return f
	}
	return call.NewFault(call.Backend, peer, "it left the call for a failure of rank %d that no rank has reported", blamed)
}

// hasClosed asks the process of a rank of another host whether the rank has closed
// the Comm: then it takes no new connection for it.
func (c *ends) hasClosed(peer int) bool {
	if c.rank.Group.Topology().Node(peer) == c.rank.Group.Topology().Node(c.rank.Group.Rank()) {
		return false
	}
	ctx, cancel := context.WithTimeout(c.rank.Fate.Context(), 100*time.Millisecond)
	defer cancel()
	conn, err := c.rank.Site.Job.Net.TCP.Open(ctx, tcp.MakeKey(c.rank.Group.ID(), uint32(classes), uint32(c.rank.Group.Rank()), uint32(peer)), uint32(c.rank.Group.Rank()), c.rank.Site.Job.Net.Addrs.At(c.rank.Group.World(peer)))
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, tcp.ErrGone)
}

// SayBye tells the other ends of this rank's connections that it closes the Comm, or
// why the Comm has failed.
func (c *ends) SayBye() {
	h := head{comm: c.rank.Group.ID(), kind: messageBye}
	if c.rank.Order.Calls > uint64(c.rank.Order.Start) {
		h.record = c.rank.Order.Entered(0)
	}
	if f := c.rank.Fate.Cause(); f != nil {
		h.kind, h.step, h.record.Root = messageFailed, uint32(f.Code), int32(c.rank.Group.Blamed(f))
	}
	var b [HeadBytes]byte
	h.encode(b[:])
	for _, l := range c.made {
		if l.conn != nil && l.outNext == l.outTurn { // else a message is half way out
			l.out.TrySend(b[:])
		}
	}
}
