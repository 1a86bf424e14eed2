package cpu

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

	"github.com/goccl/goccl/ccl/internal/tcp"
)

// Links are a rank's ways to send messages to others.
type Links struct {
	*Reach
	made map[linkKey]*link
	exec executor
	work *workspace
}

// init readies c, whose Reach is.
func (c *Links) init(r *Reach, work *workspace) {
	c.Reach, c.work, c.made = r, work, map[linkKey]*link{}
}

// close ends all of them.
func (c *Links) close() {
	for _, l := range c.made {
		l.close()
	}
}

// A link joins this rank with one other, for the messages of one class. It is made
// on first use: a pipe each way inside a host, a TCP connection between hosts.
type link struct {
	peer  int
	class class
	out   outlet
	in    inlet
	conn  *tcp.Conn
	to    *pipeWriter // out and in, to a rank of this host
	from  *pipeReader
	// Messages take turns: one is on its way out, and one on its way in.
	outNext, outTurn, inNext, inTurn uint64
	sent, received                   uint64 // messages of point-to-point calls
}

type outlet interface {
	TrySend(b []byte) (int, error)
}

type inlet interface {
	TryRecv(b []byte) (int, error)
	// Peek is up to limit bytes, where they lie or in buf. All of them are taken
	// by Discard before the next Peek.
	Peek(buf []byte, limit int) ([]byte, error)
	Discard(n int)
}

// stream is a TCP connection as an inlet.
type stream struct{ *tcp.Conn }

func (s stream) Peek(buf []byte, limit int) ([]byte, error) {
	n, err := s.TryRecv(buf[:min(limit, len(buf))])
	return buf[:n], err
}

func (s stream) Discard(int) {}

// The classes of messages: point-to-point calls and collectives do not wait for
// each other, so each has links of its own.
type class uint8

const (
	collective class = iota
	pointToPoint
	confirmations // of point-to-point calls, under CheckStrict
	agreements    // of Shrink
	classes
)

type linkKey struct {
	peer  int32
	class class
}

// link returns the link to peer. Its inlet may come later: see inletOf.
func (c *Links) link(ctx context.Context, peer int, cl class) (*link, *Fault) {
	key := linkKey{int32(peer), cl}
	if l := c.made[key]; l != nil {
		return l, nil
	}
	l := &link{peer: peer, class: cl, sent: uint64(c.start), received: uint64(c.start)}
	if c.topo.Node(peer) == c.topo.Node(c.rank) {
		out, err := c.pipeTo(c.topo.Local(peer), cl)
		if err != nil {
			return nil, c.stop(fault(Backend, c.rank, "%w", err))
		}
		l.out, l.to = out, out
	} else if f := c.dial(ctx, l, cl); f != nil {
		return nil, f
	}
	c.made[key] = l
	return l, nil
}

// dial connects with a rank of another host.
func (c *Links) dial(ctx context.Context, l *link, cl class) *Fault {
	w := c.members.world(l.peer)
	addr := c.site.addrs[w]
	key := tcp.MakeKey(c.id, uint32(cl), uint32(c.rank), uint32(l.peer))
	dctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, cancel)
	defer stop()
	if t := c.opt.Timeout; t > 0 {
		var cancel2 context.CancelFunc
		dctx, cancel2 = context.WithTimeout(dctx, t)
		defer cancel2()
	}
	conn, err := c.site.tcp.OpenUnless(dctx, key, uint32(c.rank), addr, c.site.leftYet(w))
	if err == nil {
		l.conn, l.out, l.in = conn, conn, stream{conn}
		return nil
	}
	if f := c.cause.Load(); f != nil {
		return f
	}
	if e := ctx.Err(); e != nil {
		return c.stop(ctxFault(e, []int{l.peer}))
	}
	if errors.Is(err, tcp.ErrGone) {
		return c.stop(fault(Closed, l.peer, ""))
	}
	if errors.Is(err, tcp.ErrRefused) {
		if c.site.leftInOrder(w) {
			return c.stop(fault(Closed, l.peer, ""))
		}
		return c.stop(&Fault{Code: RankLost, Peer: l.peer, Err: tcp.ErrRefused})
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return c.stop(&Fault{Code: Timeout, Peer: l.peer, Missing: []int{l.peer}, Err: err})
	}
	if tcp.IsOwnTrouble(err) { // which the peer is not to blame for
		return c.stop(fault(Backend, c.rank, "cannot connect with rank %d: %w", l.peer, err))
	}
	return c.stop(fault(Backend, l.peer, "cannot reach rank %d at %v: %w", l.peer, addr, err))
}

// ready makes sure of l's inlet. It is false while a peer of this host has not
// made its pipe.
func (c *Links) ready(l *link) (bool, *Fault) {
	if l.in != nil {
		return true, nil
	}
	p, err := c.pipeFrom(c.topo.Local(l.peer), l.class)
	if err != nil {
		return false, c.stop(fault(Backend, c.rank, "%w", err))
	}
	if p == nil {
		return false, nil
	}
	p.join(l.to)
	l.in, l.from = p, p
	return true, nil
}

func (l *link) close() {
	if l.conn != nil {
		l.conn.Close()
	}
}

// broken reports that the stream with peer ended. Often that is the echo of another
// failure, whose report is on its way: it gets a moment to arrive.
func (c *Links) broken(peer int, err error) *Fault {
	if f := c.reported(peer); f != nil {
		return f
	}
	if c.hasClosed(peer) || c.site.leftInOrder(c.members.world(peer)) {
		return c.stop(fault(Closed, peer, ""))
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("its process ended")
	}
	return c.stop(&Fault{Code: RankLost, Peer: peer, Err: err})
}

// reported waits a moment for the report of a failure, or for peer to have left in good order.
func (c *Links) reported(peer int) *Fault {
	for range 30 {
		if f := c.cause.Load(); f != nil {
			return f
		}
		if peer >= 0 && c.site.knownLeft(c.members.world(peer)) {
			return nil
		}
		c.site.scan()
		time.Sleep(5 * time.Millisecond)
	}
	return nil
}

// cut is broken, for a link on which this rank could not send: what the peer said
// last may still wait to be read.
func (c *Links) cut(l *link, err error) *Fault {
	for _, r := range c.exec.rx {
		if r.l == l && !r.done && r.gotN > 0 {
			return c.broken(l.peer, err)
		}
	}
	var b [headBytes]byte
	var h head
	if n, _ := l.in.TryRecv(b[:]); n == headBytes && h.decode(b[:]) == nil {
		if f := c.farewell(&h, l.peer); f != nil {
			return c.stop(f)
		}
	}
	return c.broken(l.peer, err)
}

// farewell is why peer leaves, if that is what h says.
func (c *Links) farewell(h *head, peer int) *Fault {
	switch h.kind {
	case messageBye:
		return fault(Closed, peer, "")
	case messageFailed:
		if h.step == 0 || h.step > uint32(Closed) {
			return fault(RankLost, peer, "")
		}
		if Code(h.step) == Mismatch { // the report on its way says more
			if f := c.reported(peer); f != nil {
				return f
			}
		}
		blamed := int(h.record.Root)
		if blamed == c.rank { // to this rank it is the other that differs
			blamed = peer
		}
		return fault(Code(h.step), blamed, "")
	}
	return nil
}

// hasClosed asks the process of a rank of another host whether the rank has closed
// the Comm: then it takes no new connection for it.
func (c *Links) hasClosed(peer int) bool {
	if c.topo.Node(peer) == c.topo.Node(c.rank) {
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, 100*time.Millisecond)
	defer cancel()
	conn, err := c.site.tcp.Open(ctx, tcp.MakeKey(c.id, uint32(classes), uint32(c.rank), uint32(peer)), uint32(c.rank), c.site.addrs[c.members.world(peer)])
	if err == nil {
		conn.Close()
	}
	return errors.Is(err, tcp.ErrGone)
}

// headBytes is the size of what precedes each message:
//
//	0 magic 4 | 4 CRC32C of the rest 4 | 8 Comm 8 | 16 payload bytes 8 | 24 step 4 |
//	28 kind of message 1 | 29 whether there is a checksum 1 | 32 the sender's record
//	(recordWire) | 60 that of the collective before it (recordWire) | 88 CRC32C of the payload 4 |
//	92 the factor of the record 4
const (
	headBytes = 96
	headMagic = 0x6c63_6347 // "Gccl"

	messageData   = 1
	messageBye    = 2 // the sender closes the Comm
	messageFailed = 3 // the same after a failure: its code is step, the rank at fault the record's root
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is the header of one message, as sent and as expected.
type head struct {
	comm   uint64
	bytes  uint64
	step   uint32
	kind   byte
	summed bool
	sum    uint32 // of the payload, if summed
	record Record
	before Record
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
	h.record.encode(b[32:])
	h.before.encode(b[32+recordWire:])
	clear(b[32+2*recordWire : headBytes])
	le.PutUint32(b[88:], h.sum)
	le.PutUint32(b[92:], math.Float32bits(h.record.Times))
	le.PutUint32(b[4:], crc32.Checksum(b[8:headBytes], castagnoli))
}

func (h *head) decode(b []byte) error {
	if len(b) != headBytes {
		return fmt.Errorf("a message header has %d bytes, not %d", headBytes, len(b))
	}
	le := binary.LittleEndian
	if le.Uint32(b) != headMagic || le.Uint32(b[4:]) != crc32.Checksum(b[8:], castagnoli) {
		return errors.New("a message header is damaged")
	}
	h.comm, h.bytes, h.step, h.kind = le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint32(b[24:]), b[28]
	h.record.decode(b[32:])
	h.before.decode(b[32+recordWire:])
	h.summed, h.sum = b[29] == 1, le.Uint32(b[88:])
	h.record.Times = math.Float32frombits(le.Uint32(b[92:]))
	return nil
}

// sayBye tells the other ends of this rank's connections that it closes the Comm, or
// why the Comm has failed.
func (c *Links) sayBye() {
	h := head{comm: c.id, kind: messageBye}
	if f := c.cause.Load(); f != nil {
		h.kind, h.step, h.record.Root = messageFailed, uint32(f.Code), int32(c.blamed(f))
	}
	var b [headBytes]byte
	h.encode(b[:])
	for _, l := range c.made {
		if l.conn != nil && l.outNext == l.outTurn { // else a message is half way out
			l.out.TrySend(b[:])
		}
	}
}
