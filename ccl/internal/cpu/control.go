package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/tcp"
)

// The control tree joins the hosts of a job: each host's first process has a
// connection to that of host (h-1)/2 and of hosts 2h+1 and 2h+2, at most three
// whatever the number of hosts. Events flood it: a failure reaches all of n hosts
// in at most 2 log2 n hops. It is independent of all data connections.

// controlStream is the stream number of the tree's connections, of no Comm.
const controlStream = 0xc0

// A frame is a length (of the whole, little-endian, 2 bytes), a kind, a version, and
// a body.
const (
	frameBeat  = 1 // I am alive
	frameEvent = 2 // an event
	frameBye   = 3 // I leave in good order; my other neighbors, 4 bytes each

	frameHead    = 4
	frameVersion = 1
	frameMax     = frameHead + eventWire
)

type controlConn struct {
	net.Conn
	host  int // at the other end
	first int // its lowest rank of the world
	wmu   sync.Mutex
	out   [frameMax]byte // under wmu: what is written, so that a beat allocates nothing
}

// send writes one frame, with the event if there is one. A failure to write shows at the
// reading end.
func (c *controlConn) send(kind byte, e *event) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	n := frameHead
	if e != nil {
		n += len(e.encode(c.out[frameHead:]))
	}
	c.write(kind, n)
}

// write writes the first n bytes of c.out as a frame. c.wmu is held.
func (c *controlConn) write(kind byte, n int) {
	binary.LittleEndian.PutUint16(c.out[:], uint16(n))
	c.out[2], c.out[3] = kind, frameVersion
	c.SetWriteDeadline(time.Now().Add(time.Second))
	c.Write(c.out[:n])
}

// bye says which hosts were this one's neighbors, so that they can join each other.
func (c *controlConn) bye(neighbors []*controlConn) {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	b := c.out[:frameHead]
	for _, n := range neighbors {
		if len(b)+4 <= frameMax {
			b = binary.LittleEndian.AppendUint32(b, uint32(n.host))
		}
	}
	c.write(frameBye, len(b))
	c.Close()
}

// readFrame reads one frame. buf holds at least frameMax bytes, and the body after.
func readFrame(r io.Reader, buf []byte) (kind byte, body []byte, err error) {
	if _, err = io.ReadFull(r, buf[:frameHead]); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint16(buf))
	kind = buf[2]
	if n < frameHead || n > frameMax || buf[3] != frameVersion {
		return 0, nil, fmt.Errorf("control: a frame of kind %d, version %d and %d bytes makes no sense", kind, buf[3], n)
	}
	body = buf[frameHead:n]
	_, err = io.ReadFull(r, body)
	return kind, body, err
}

// joinTree connects this host with its neighbors in the tree.
func (s *site) joinTree(ctx context.Context) error {
	if !s.leader {
		return nil
	}
	neighbors := make([]int, 0, 3)
	if s.node > 0 {
		neighbors = append(neighbors, (s.node-1)/2)
	}
	for h := 2*s.node + 1; h <= 2*s.node+2; h++ {
		if h < s.topo.Nodes() {
			neighbors = append(neighbors, h)
		}
	}
	for _, h := range neighbors {
		if err := s.joinHost(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// joinHost makes host h a neighbor, and tells it what has happened so far.
func (s *site) joinHost(ctx context.Context, h int) error {
	first := s.topo.Rank(h, 0)
	key := tcp.MakeKey(0, controlStream, uint32(s.node), uint32(h))
	conn, err := s.tcp.OpenControl(ctx, key, uint32(s.node), s.addrs[first])
	if err != nil {
		return fmt.Errorf("control connection to rank %d (%v): %w", first, s.addrs[first], err)
	}
	c := &controlConn{Conn: conn, host: h, first: first}
	s.mu.Lock()
	if s.leaving {
		s.mu.Unlock()
		conn.Close()
		return nil
	}
	s.control = append(s.control[:len(s.control):len(s.control)], c)
	old := append([]event(nil), s.history...)
	s.wg.Add(1)
	s.mu.Unlock()
	for i := range old {
		c.send(frameEvent, &old[i])
	}
	go s.listenTo(c)
	return nil
}

// listenTo passes on what comes from a neighbor, and reports its end.
func (s *site) listenTo(c *controlConn) {
	defer s.wg.Done()
	buf := make([]byte, frameMax)
	for {
		if s.peer > 0 {
			c.SetReadDeadline(time.Now().Add(s.peer))
		} else {
			c.SetReadDeadline(time.Time{})
		}
		kind, body, err := readFrame(c, buf)
		var e event
		if err == nil && kind == frameEvent {
			err = e.decode(body)
		}
		switch {
		case err == nil && kind == frameEvent:
			s.take(e, c)
		case err == nil && kind == frameBye:
			s.drop(c)
			s.bridge(body)
			return
		case err == nil: // a beat
		default:
			s.drop(c)
			if s.ending() {
				return
			}
			var ne net.Error
			if errors.As(err, &ne) && ne.Timeout() {
				err = fmt.Errorf("its host has been silent for %v", s.peer)
			} else {
				err = errors.New("its process ended, or its host cannot be reached")
			}
			s.lost(c.first, err)
			return
		}
	}
}

// take passes on an event that came from a neighbor.
func (s *site) take(e event, from *controlConn) {
	if s.knows(&e) { // told again to a new neighbor
		return
	}
	s.forward(&e, from)
	if s.host.shared() {
		s.host.head.log.append(e)
		s.scan()
	} else {
		s.deliver(e)
	}
}

func (s *site) knows(e *event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.history, *e)
}

func (s *site) ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaving
}

// drop takes a neighbor away.
func (s *site) drop(c *controlConn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.control, c)
	if i >= 0 {
		s.control = append(s.control[:i:i], s.control[i+1:]...)
	}
	c.Close()
}

// bridgeAfter is the time a host waits before it joins the neighbors of one that has
// left: when a job ends, all leave at about the same time.
const bridgeAfter = 10 * time.Millisecond

// bridge joins the neighbors of a host that has left, so that the tree stays one: the
// first of them becomes the neighbor of all others.
func (s *site) bridge(list []byte) {
	var hosts []int
	for ; len(list) >= 4; list = list[4:] {
		if h := binary.LittleEndian.Uint32(list); h < uint32(s.topo.Nodes()) {
			hosts = append(hosts, int(h))
		}
	}
	if len(hosts) < 2 {
		return
	}
	join := hosts[:1]
	if hosts[0] == s.node {
		join = hosts[1:]
	}
	select {
	case <-s.stopCh:
		return
	case <-time.After(bridgeAfter):
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	go func() {
		select {
		case <-s.stopCh:
			cancel()
		case <-ctx.Done():
		}
	}()
	for _, h := range join {
		// One that leaves, too, has neighbors of its own to tell.
		_ = s.joinHost(ctx, h)
	}
}

// forward sends e to all neighbors but the one it came from.
func (s *site) forward(e *event, from *controlConn) {
	for _, c := range s.neighbors() {
		if c != from {
			c.send(frameEvent, e)
		}
	}
}

// beat tells the neighbors that this host is alive.
func (s *site) beat() {
	for _, c := range s.neighbors() {
		c.send(frameBeat, nil)
	}
}

// neighbors are the connections of the tree; only the host's leader has any.
func (s *site) neighbors() []*controlConn {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.control
}

// eventWire is the size of an encoded event.
const eventWire = 8 + 4 + 4 + 4 + 1 + 1 + 78 + recordWire

func (e *event) encode(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b[0:], e.Comm)
	le.PutUint32(b[8:], uint32(e.Peer))
	le.PutUint32(b[12:], uint32(e.From))
	le.PutUint32(b[16:], uint32(e.Node))
	b[20], b[21] = e.Code, e.Bytes
	copy(b[22:100], e.Text[:])
	e.Call.encode(b[100:])
	return b[:eventWire]
}

func (e *event) decode(b []byte) error {
	if len(b) != eventWire {
		return fmt.Errorf("control: an event of %d bytes; %d are expected", len(b), eventWire)
	}
	le := binary.LittleEndian
	e.Comm = le.Uint64(b[0:])
	e.Peer, e.From, e.Node = int32(le.Uint32(b[8:])), int32(le.Uint32(b[12:])), int32(le.Uint32(b[16:]))
	e.Code, e.Bytes = b[20], b[21]
	copy(e.Text[:], b[22:100])
	e.Call.decode(b[100:])
	if int(e.Bytes) > len(e.Text) || e.Code == 0 || Code(e.Code) > Closed {
		return errors.New("control: an event that makes no sense")
	}
	return nil
}

// recordWire is the size of an encoded record: what is compared of it.
const recordWire = 8 + 8 + 4 + 4 + 4

func (r *Record) encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.Seq)
	le.PutUint64(b[8:], r.Count)
	le.PutUint32(b[16:], uint32(r.Root))
	le.PutUint32(b[20:], r.Hash)
	b[24], b[25], b[26], b[27] = byte(r.Kind), r.Type, r.Op, r.State
}

func (r *Record) decode(b []byte) {
	le := binary.LittleEndian
	r.Seq, r.Count = le.Uint64(b[0:]), le.Uint64(b[8:])
	r.Root, r.Hash = int32(le.Uint32(b[16:])), le.Uint32(b[20:])
	r.Kind, r.Type, r.Op, r.State = Kind(b[24]), b[25], b[26], b[27]
}
