package cpu

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
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

// A frame is a length (of the whole, little-endian, 2 bytes), a kind, a version,
// and the event, if any.
const (
	frameBeat  = 1 // I am alive
	frameEvent = 2
	frameBye   = 3 // I leave in good order

	frameHead    = 4
	frameVersion = 1
	frameMax     = frameHead + eventWire
)

type controlConn struct {
	net.Conn
	host  int // at the other end
	first int // its lowest rank of the world
	wmu   sync.Mutex
}

// send writes one frame. A failure to write shows at the reading end.
func (c *controlConn) send(kind byte, e *event) {
	var b [frameMax]byte
	n := frameHead
	if e != nil {
		n += len(e.encode(b[frameHead:]))
	}
	binary.LittleEndian.PutUint16(b[:], uint16(n))
	b[2], b[3] = kind, frameVersion
	c.wmu.Lock()
	defer c.wmu.Unlock()
	c.SetWriteDeadline(time.Now().Add(time.Second))
	c.Write(b[:n])
}

func (c *controlConn) bye() {
	c.send(frameBye, nil)
	c.Close()
}

// readFrame reads one frame. buf holds at least frameMax bytes.
func readFrame(r io.Reader, buf []byte) (kind byte, e event, err error) {
	if _, err = io.ReadFull(r, buf[:frameHead]); err != nil {
		return 0, e, err
	}
	n := int(binary.LittleEndian.Uint16(buf))
	kind = buf[2]
	if n < frameHead || n > frameMax || buf[3] != frameVersion {
		return 0, e, fmt.Errorf("control: a frame of kind %d, version %d and %d bytes makes no sense", kind, buf[3], n)
	}
	body := buf[frameHead:n]
	if _, err = io.ReadFull(r, body); err != nil {
		return 0, e, err
	}
	if kind == frameEvent {
		err = e.decode(body)
	}
	return kind, e, err
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
		first := s.topo.Rank(h, 0)
		key := tcp.MakeKey(0, controlStream, uint32(s.node), uint32(h))
		conn, err := s.tcp.OpenControl(ctx, key, uint32(s.node), s.addrs[first])
		if err != nil {
			return fmt.Errorf("control connection to rank %d (%v): %w", first, s.addrs[first], err)
		}
		c := &controlConn{Conn: conn, host: h, first: first}
		s.mu.Lock()
		s.control = append(s.control, c)
		s.mu.Unlock()
		s.wg.Add(1)
		go s.listenTo(c)
	}
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
		kind, e, err := readFrame(c, buf)
		switch {
		case err == nil && kind == frameEvent:
			s.forward(&e, c)
			if s.host.shared() {
				s.host.head.log.append(e)
				s.scan()
			} else {
				s.deliver(e)
			}
		case err == nil && kind == frameBye:
			return
		case err == nil:
		default:
			s.mu.Lock()
			leaving := s.leaving
			s.mu.Unlock()
			if !leaving {
				var ne net.Error
				if errors.As(err, &ne) && ne.Timeout() {
					err = fmt.Errorf("its host has been silent for %v", s.peer)
				} else {
					err = errors.New("its process ended, or its host cannot be reached")
				}
				s.lost(c.first, err)
			}
			return
		}
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
