package links

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/reach"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// Links are a rank's ways to send messages to others.
type Links struct {
	*reach.Reach
	made map[linkKey]*Link
	Exec executor
	work *call.Workspace
}

// Init readies c, whose Reach is.
func (c *Links) Init(r *reach.Reach, work *call.Workspace) {
	c.Reach, c.work, c.made = r, work, map[linkKey]*Link{}
}

// Close ends all of them.
func (c *Links) Close() {
	for _, l := range c.made {
		l.close()
	}
}

// A link joins this rank with one other, for the messages of one class. It is made
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

type Outlet interface {
	TrySend(b []byte) (int, error)
}

type Inlet interface {
	TryRecv(b []byte) (int, error)
	// Peek is up to limit bytes, where they lie or in buf. All of them are taken
	// by Discard before the next Peek.
	Peek(buf []byte, limit int) ([]byte, error)
	Discard(n int)
}

// Stream is a TCP connection as an inlet.
type Stream struct{ *tcp.Conn }

func (s Stream) Peek(buf []byte, limit int) ([]byte, error) {
	n, err := s.TryRecv(buf[:min(limit, len(buf))])
	return buf[:n], err
}

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

// Link returns the link to peer. Its inlet may come later: see inletOf.
func (c *Links) Link(ctx context.Context, peer int, cl class) (*Link, *call.Fault) {
	key := linkKey{int32(peer), cl}
	if l := c.made[key]; l != nil {
		return l, nil
	}
	l := &Link{peer: peer, class: cl, sent: uint64(c.Start), received: uint64(c.Start)}
	if c.Topo.Node(peer) == c.Topo.Node(c.Rank()) {
		out, err := c.PipeTo(c.Topo.Local(peer), cl)
		if err != nil {
			return nil, c.Stop(call.NewFault(call.Backend, c.Rank(), "%w", err))
		}
		l.out, l.To = out, out
	} else if f := c.dial(ctx, l, cl); f != nil {
		return nil, f
	}
	c.made[key] = l
	return l, nil
}

// dial connects with a rank of another host.
func (c *Links) dial(ctx context.Context, l *Link, cl class) *call.Fault {
	w := c.Members.World(l.peer)
	addr := c.Site.Addrs[w]
	key := tcp.MakeKey(c.ID(), uint32(cl), uint32(c.Rank()), uint32(l.peer))
	dctx, cancel := context.WithCancel(c.Ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	if t := c.Opt.Timeout; t > 0 {
		var cancel2 context.CancelFunc
		dctx, cancel2 = context.WithTimeout(dctx, t)
		defer cancel2()
	}
	conn, err := c.Site.TCP.OpenUnless(dctx, key, uint32(c.Rank()), addr, c.Site.LeftYet(w))
	if err == nil {
		l.conn, l.out, l.in = conn, conn, Stream{conn}
		return nil
	}
	if f := c.Cause.Load(); f != nil {
		return f
	}
	if e := ctx.Err(); e != nil {
		return c.Stop(call.CtxFault(e, []int{l.peer}))
	}
	if errors.Is(err, tcp.ErrGone) {
		return c.Stop(call.NewFault(call.Closed, l.peer, ""))
	}
	if errors.Is(err, tcp.ErrRefused) {
		if c.Site.LeftInOrder(w) {
			return c.Stop(call.NewFault(call.Closed, l.peer, ""))
		}
		return c.Stop(&call.Fault{Code: call.RankLost, Peer: l.peer, Err: tcp.ErrRefused})
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return c.Stop(&call.Fault{Code: call.Timeout, Peer: l.peer, Missing: []int{l.peer}, Err: err})
	}
	if tcp.IsOwnTrouble(err) { // which the peer is not to blame for
		return c.Stop(call.NewFault(call.Backend, c.Rank(), "cannot connect with rank %d: %w", l.peer, err))
	}
	return c.Stop(call.NewFault(call.Backend, l.peer, "cannot reach rank %d at %v: %w", l.peer, addr, err))
}

// Ready makes sure of l's inlet. It is false while a peer of this host has not
// made its pipe.
func (c *Links) Ready(l *Link) (bool, *call.Fault) {
	if l.in != nil {
		return true, nil
	}
	p, err := c.PipeFrom(c.Topo.Local(l.peer), l.class)
	if err != nil {
		return false, c.Stop(call.NewFault(call.Backend, c.Rank(), "%w", err))
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
func (c *Links) broken(peer int, err error) *call.Fault {
	if f := c.reported(peer); f != nil {
		return f
	}
	if c.hasClosed(peer) || c.Site.LeftInOrder(c.Members.World(peer)) {
		return c.Stop(call.NewFault(call.Closed, peer, ""))
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("its process ended")
	}
	return c.Stop(&call.Fault{Code: call.RankLost, Peer: peer, Err: err})
}

// reported waits a moment for the report of a failure, or for peer to have left in good order.
func (c *Links) reported(peer int) *call.Fault {
	for range 30 {
		if f := c.Cause.Load(); f != nil {
			return f
		}
		if peer >= 0 && c.Site.KnownLeft(c.Members.World(peer)) {
			return nil
		}
		c.Site.Scan()
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// cut is broken, for a link on which this rank could not send: what the peer said
// last may still wait to be read.
func (c *Links) cut(l *Link, err error) *call.Fault {
	for _, r := range c.Exec.Rx {
		if r.l == l && !r.done && r.gotN > 0 {
			return c.broken(l.peer, err)
		}
	}
	var b [HeadBytes]byte
	var h head
	if n, _ := l.in.TryRecv(b[:]); n == HeadBytes && h.decode(b[:]) == nil {
		if f := c.farewell(&h, l.peer); f != nil {
			return c.Stop(f)
		}
	}
	return c.broken(l.peer, err)
}

// farewell is why peer leaves, if that is what h says.
func (c *Links) farewell(h *head, peer int) *call.Fault {
	switch h.kind {
	case messageBye:
		return call.NewFault(call.Closed, peer, "")
	case messageFailed:
		if h.step == 0 || h.step > uint32(call.Closed) {
			return call.NewFault(call.RankLost, peer, "")
		}
		if call.Code(h.step) == call.Mismatch { // the report on its way says more
			if f := c.reported(peer); f != nil {
				return f
			}
		}
		blamed := int(h.record.Root)
		if blamed == c.Rank() { // to this rank it is the other that differs
			blamed = peer
		}
		return call.NewFault(call.Code(h.step), blamed, "")
	}
	return nil
}

// hasClosed asks the process of a rank of another host whether the rank has closed
// the Comm: then it takes no new connection for it.
func (c *Links) hasClosed(peer int) bool {
	if c.Topo.Node(peer) == c.Topo.Node(c.Rank()) {
		return false
	}
	ctx, cancel := context.WithTimeout(c.Ctx, 100*time.Millisecond)
	defer cancel()
	conn, err := c.Site.TCP.Open(ctx, tcp.MakeKey(c.ID(), uint32(classes), uint32(c.Rank()), uint32(peer)), uint32(c.Rank()), c.Site.Addrs[c.Members.World(peer)])
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, tcp.ErrGone)
}

// HeadBytes is the size of what precedes each message:
//
//	0 magic 4 | 4 CRC32C of the rest 4 | 8 Comm 8 | 16 payload bytes 8 | 24 step 4 |
//	28 kind of message 1 | 29 whether there is a checksum 1 | 32 the sender's record
//	(RecordWire) | 60 that of the collective before it (RecordWire) | 88 CRC32C of the payload 4 |
//	92 the factor of the record 4
const (
	HeadBytes = 96
	headMagic = 0x6c63_6347 // "Gccl"

	messageData   = 1
	messageBye    = 2 // the sender closes the Comm
	messageFailed = 3 // the same after a failure: its code is step, the rank at fault the record's root
)

var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is the header of one message, as sent and as expected.
type head struct {
	comm   uint64
	bytes  uint64
	step   uint32
	kind   byte
	summed bool
	sum    uint32 // of the payload, if summed
	record call.Record
	before call.Record
}

// checksums says that payloads between hosts carry a CRC32C, for networks that are not to
// be trusted: TCP's own checksum misses one in 65,536 errors.
var checksums = os.Getenv("GOCCL_CHECKSUM") == "1"

func (h *head) encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b, headMagic)
	le.PutUint64(b[8:], h.comm)
	le.PutUint64(b[16:], h.bytes)
	le.PutUint32(b[24:], h.step)
	b[28], b[29], b[30], b[31] = h.kind, 0, 0, 0
	if h.summed {
		b[29] = 1
	}
	h.record.Encode(b[32:])
	h.before.Encode(b[32+call.RecordWire:])
	clear(b[32+2*call.RecordWire : HeadBytes])
	le.PutUint32(b[88:], h.sum)
	le.PutUint32(b[92:], math.Float32bits(h.record.Times))
	le.PutUint32(b[4:], crc32.Checksum(b[8:HeadBytes], Castagnoli))
}

func (h *head) decode(b []byte) error {
	if len(b) != HeadBytes {
		return fmt.Errorf("a message header has %d bytes, not %d", HeadBytes, len(b))
	}
	le := binary.LittleEndian
	if le.Uint32(b) != headMagic || le.Uint32(b[4:]) != crc32.Checksum(b[8:], Castagnoli) {
		return errors.New("a message header is damaged")
	}
	h.comm, h.bytes, h.step, h.kind = le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint32(b[24:]), b[28]
	h.record.Decode(b[32:])
	h.before.Decode(b[32+call.RecordWire:])
	h.summed, h.sum = b[29] == 1, le.Uint32(b[88:])
	h.record.Times = math.Float32frombits(le.Uint32(b[92:]))
	return nil
}

// SayBye tells the other ends of this rank's connections that it closes the Comm, or
// why the Comm has failed.
func (c *Links) SayBye() {
	h := head{comm: c.ID(), kind: messageBye}
	if f := c.Cause.Load(); f != nil {
		h.kind, h.step, h.record.Root = messageFailed, uint32(f.Code), int32(c.Blamed(f))
	}
	var b [HeadBytes]byte
	h.encode(b[:])
	for _, l := range c.made {
		if l.conn != nil && l.outNext == l.outTurn { // else a message is half way out
			l.out.TrySend(b[:])
		}
	}
}
