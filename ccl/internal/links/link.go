package links

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/lived"
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

	lanes []*Link // the connections of large messages, this link first; nil until a large message was sent
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
	classes       // from here on: see ends.ask
)

type linkKey struct {
	peer  int32
	class class
	lane  uint8 // 0: the link of all messages but the further shares of large ones
}

// Link returns the link to peer. Of a pipe its inlet is looked for when something is received.
func (c *ends) Link(ctx context.Context, peer int, cl class) (*Link, *call.Fault) {
	key := linkKey{peer: int32(peer), class: cl}
	if l := c.made[key]; l != nil {
		return l, nil
	}
	l := c.newLink(peer, cl)
	if c.rank.Group.IsHere(peer) {
		out, err := c.PipeTo(c.rank.Group.Topology().Local(peer), cl)
		if err != nil {
			return nil, c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "%w", err))
		}
		l.out, l.To = out, out
	} else if err := c.dial(ctx, l, 0); err != nil {
		return nil, c.notDialed(ctx, peer, err)
	}
	c.made[key] = l
	return l, nil
}

func (c *ends) newLink(peer int, cl class) *Link {
	return &Link{peer: peer, class: cl, sent: uint64(c.rank.Order.Start), received: uint64(c.rank.Order.Start)}
}

const (
	endLook  = 100 * time.Millisecond
	endLooks = 10
)

// watchEnd calls cancel once the call under way has gone on for a second after the end of a process. The rank that is
// dialed may have failed for that reason, and not answer.
func (c *ends) watchEnd(ctx context.Context, cancel func()) {
	for looks := 0; looks < endLooks; {
		if !lived.Sleep(ctx, endLook) {
			return
		}
		if looks++; c.rank.Fate.Outlived() == nil {
			looks = 0
		}
	}
	cancel()
}

// dial connects l, one of its lanes, with a rank of another host.
func (c *ends) dial(ctx context.Context, l *Link, lane uint8) error {
	w := c.rank.Group.World(l.peer)
	addr := c.rank.Site.Job.Net.Addrs.At(w)
	key := tcp.MakeKey(c.rank.Group.ID(), uint32(l.class)|uint32(lane)<<8, uint32(c.rank.Group.Rank()), uint32(l.peer))
	dctx, cancel := c.within(ctx, c.rank.Group.Timeout())
	defer cancel()
	conn, err := c.rank.Site.Job.Net.TCP.OpenUnless(dctx, key, uint32(c.rank.Group.Rank()), addr, c.rank.Site.EndedYet(w),
		func() bool { return c.rank.Fate.Outlived() != nil })
	if err == nil {
		l.conn, l.out, l.in = conn, conn, Stream{conn}
	}
	return err
}

// within is for a connection that the call under way needs: it ends with the call's context, with
// the Comm, a second after the end of a process that the call outlives, and after limit, unless
// that is 0.
func (c *ends) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	dctx, cancel := context.WithCancel(c.rank.Fate.Context())
	stop := context.AfterFunc(ctx, cancel)
	go c.watchEnd(dctx, cancel)
	end := func() {}
	if limit > 0 {
		dctx, end = lived.Within(dctx, limit)
	}
	return dctx, func() { end(); stop(); cancel() }
}

// notDialed is the failure of a call that could not connect with a rank of another host.
func (c *ends) notDialed(ctx context.Context, peer int, err error) *call.Fault {
	w := c.rank.Group.World(peer)
	if f := c.rank.Fate.Cause(); f != nil {
		return f
	}
	if e := ctx.Err(); e != nil {
		why := e
		if u := (*tcp.Unmade)(nil); errors.As(err, &u) {
			why = fmt.Errorf("%w; %w", e, u)
		}
		return c.rank.Stop(plane.Unfinished(c.rank, e, why, peer))
	}
	if f := c.rank.Fate.Outlived(); f != nil {
		return c.rank.Stop(f)
	}
	if errors.Is(err, tcp.ErrGone) {
		return c.rank.Stop(call.NewFault(call.Closed, peer, ""))
	}
	if errors.Is(err, tcp.ErrRefused) {
		certain := plane.IsCertain(c.rank.Site, w) // as of now: while a report is waited for, that host may not be heard
		if f := c.silenced(ctx, peer); f != nil {
			return f
		}
		return c.rank.Stop(&call.Fault{Code: call.RankLost, Peer: peer, Certain: certain, Err: tcp.ErrRefused})
	}
	if tcp.IsOwnTrouble(err) {
		return c.ownTrouble(peer, err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return c.rank.Stop(plane.Unfinished(c.rank, context.DeadlineExceeded, err, peer))
	}
	return c.rank.Stop(call.NewFault(call.Backend, peer, "cannot reach rank %d at %v: %w", peer,
		c.rank.Site.Job.Net.Addrs.At(w), err))
}

// ownTrouble is the failure of a call that could not connect with peer for want of something on
// this side: that is not to blame.
func (c *ends) ownTrouble(peer int, err error) *call.Fault {
	return c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "cannot connect with rank %d: %w", peer, err))
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

// broken reports that the stream with peer ended, for the reason that BecameOf finds.
func (c *ends) broken(ctx context.Context, peer int, err error) *call.Fault {
	if errors.Is(err, errUnmapped) {
		return c.unmapped(peer)
	}
	if errors.Is(err, tcp.ErrChanged) {
		return c.rank.Stop(call.NewFault(call.Backend, peer, "%w from rank %d to rank %d (GOCCL_WIRE)", err, peer,
			c.rank.Group.Rank()))
	}
	var told *call.Fault
	became, trouble := c.BecameOf(ctx, peer, c.reports(ctx, &told))
	switch became {
	case Reported:
		return told
	case Left:
		return c.rank.Stop(call.NewFault(call.Closed, peer, ""))
	case Unasked:
		return c.ownTrouble(peer, trouble)
	}
	if ended := (*tcp.RelayEnded)(nil); errors.As(err, &ended) {
		err = ended
	} else if errors.Is(err, io.EOF) {
		err = errors.New("its process ended")
	}
	return c.rank.Stop(&call.Fault{Code: call.RankLost, Peer: peer, Err: err})
}

// reported waits, for limit at most, for the report of a failure, or for peer to have left in good
// order: what it had to report has come by then.
func (c *ends) reported(ctx context.Context, peer int, limit time.Duration) *call.Fault {
	w := c.rank.Group.World(peer)
	return plane.AwaitReport(ctx, c.rank, limit, func() bool { return c.rank.Site.KnownLeft(w) })
}

// silenced is why nothing comes from peer any more, whose process does not listen. It is nil if no
// report has come: then this rank must report the failure.
func (c *ends) silenced(ctx context.Context, peer int) (told *call.Fault) {
	switch c.heardOf(peer, c.reports(ctx, &told)) {
	case Reported:
		return told
	case Left:
		return c.rank.Stop(call.NewFault(call.Closed, peer, ""))
	}
	return nil
}

// reports waits for reports as the call under way does, which ends with what told is set to.
func (c *ends) reports(ctx context.Context, told **call.Fault) Await {
	return func(limit time.Duration, over func() bool) bool {
		*told = plane.AwaitReport(ctx, c.rank, limit, over)
		if last := c.rank.Fate.Outlived(); *told == nil && last != nil {
			*told = c.rank.Stop(last)
		}
		return *told != nil
	}
}

// Await waits for the report of a failure, for limit at most, and no longer once over. It reports
// whether there is one: then it does not matter what has become of the rank that was lost sight of.
type Await func(limit time.Duration, over func() bool) bool

// Became is what has become of a rank with which a connection has ended.
type Became uint8

const (
	Unknown  Became = iota // it has the Comm, or has not answered for as long as its report may take
	Reported               // the failure of the Comm, which says what it was
	Left                   // it has closed the Comm
	Ended                  // nobody listens any more where it did, and no report has come
	Unasked                // this process cannot ask it, for want of something of its own
)

// BecameOf finds what has become of peer, with which a connection has ended: of calls and of
// messages alike. Often that is the echo of another failure, whose report is on its way: it gets a
// moment to arrive. Then the process of peer is asked, and what it answers says whether there is
// anything more to wait for. With Unasked goes why.
func (c *ends) BecameOf(ctx context.Context, peer int, await Await) (Became, error) {
	w := c.rank.Group.World(peer)
	if await(plane.SoonFor, func() bool { return c.rank.Site.KnownLeft(w) }) {
		return Reported, nil
	}
	answer := c.ask(ctx, peer)
	switch refused := errors.Is(answer, tcp.ErrRefused); {
	case c.rank.Share.HasLeft(peer), errors.Is(answer, tcp.ErrGone):
		return Left, nil
	case tcp.IsOwnTrouble(answer):
		return Unasked, answer
	case refused, errors.Is(answer, tcp.ErrFailed),
		// which has cut the question short
		answer != nil && (ctx.Err() != nil || c.rank.Fate.Cause() != nil || c.rank.Fate.Outlived() != nil):
		if heard := c.heardOf(peer, await); heard != Unknown || !refused {
			return heard, nil
		}
		return Ended, nil
	}
	return Unknown, nil
}

// heardOf waits for what others know of peer, whose process has ended, or answers that the Comm has
// failed: for as long as the report of peer or of peer's host may take.
func (c *ends) heardOf(peer int, await Await) Became {
	w := c.rank.Group.World(peer)
	left := plane.LeftYet(c.rank.Site, w)
	gone := func() bool { return c.rank.Share.HasLeft(peer) || left() }
	switch {
	case await(plane.LossReportWithin(c.rank.Site, w), gone):
		return Reported
	case gone():
		return Left
	}
	return Unknown
}

// farewell is why peer leaves, if that is what h says.
func (c *ends) farewell(ctx context.Context, h *head, peer int) *call.Fault {
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
		return c.hearsay(ctx, call.Code(h.step), int(h.record.Root), peer)
	}
	return nil
}

// hearsay is the failure with which peer says that it leaves, and for which it blames rank blamed.
// Peer has sent its report on the control plane before; the report says why as well. The word of
// peer is believed only if no report comes, and only about peer itself or about this rank, whose
// call differs from peer's. It is not believed about a third rank, so this rank waits for the
// report as long as a report may take.
func (c *ends) hearsay(ctx context.Context, code call.Code, blamed, peer int) *call.Fault {
	itself := blamed == peer || blamed == c.rank.Group.Rank()
	limit := plane.SoonFor
	if !itself {
		limit = plane.ReportWithin(c.rank.Site)
	}
	if f := c.reported(ctx, peer, limit); f != nil {
		return f
	}
	if itself {
		return call.NewFault(code, peer, "")
	}
	if f := c.rank.Fate.Outlived(); f != nil {
		return f
	}
	return call.NewFault(call.Backend, peer, "it left the call for a failure of rank %d that no rank has reported", blamed)
}

// ask asks the process of a rank of another host whether the rank still has the Comm. It is nil if
// so, tcp.ErrGone if the rank has closed it, tcp.ErrFailed if it has failed there, and
// tcp.ErrRefused if the process has ended. Any other error says that the process does not answer in
// the time that a living process may take, not counting pauses of this process.
func (c *ends) ask(ctx context.Context, peer int) error {
	if c.rank.Group.IsHere(peer) {
		return nil
	}
	limit := plane.ReportWithin(c.rank.Site)
	if t := c.rank.Group.Timeout(); t > 0 {
		limit = min(limit, t)
	}
	dctx, cancel := c.within(ctx, 0)
	defer cancel()
	lived, end := plane.WithinLived(c.rank.Site.Job, limit)
	defer end()
	defer context.AfterFunc(lived, cancel)()
	me, question := uint32(c.rank.Group.Rank()), uint32(classes)
	if int(me) > peer { // or peer's own question would look like an answer
		question++
	}
	first := func() bool { return true } // the first answer is the last
	conn, err := c.rank.Site.Job.Net.TCP.OpenUnless(dctx, tcp.MakeKey(c.rank.Group.ID(), question, me, uint32(peer)), me,
		c.rank.Site.Job.Net.Addrs.At(c.rank.Group.World(peer)), first, first)
	if err == nil {
		conn.Close()
	}
	return err
}

// SayBye tells the other ends of this rank's connections that it closes the Comm, or
// why the Comm has failed.
func (c *ends) SayBye() {
	h := head{comm: c.rank.Group.ID(), kind: messageBye}
	if c.rank.Order.Calls > uint64(c.rank.Order.Start) {
		h.record = c.rank.Order.Entered(0)
	}
	if f := c.rank.Fate.Cause(); f != nil {
		h.kind, h.step, h.record.Root = messageFailed, uint32(f.Code), int32(f.Peer)
	}
	var b [HeadBytes]byte
	h.encode(b[:])
	for _, l := range c.made {
		if l.conn != nil && l.outNext == l.outTurn { // else a message is half way out
			l.out.TrySend(b[:])
		}
	}
}
