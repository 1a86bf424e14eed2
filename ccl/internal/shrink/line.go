package shrink

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/agree"
)

// line carries the notices between this rank and one other: pipes inside a host, a TCP
// connection of its own between hosts, which is made anew where it breaks.
//
// A line finds out by itself only what is true for all: nobody listens any more where the
// peer's process did, or that says that the rank has closed the Comm, or has done with the
// agreement. Of a peer that does not answer for PeerTimeout it tells the failure detector,
// so that all ranks, the peer among them, hear the same; and that this rank cannot connect is
// this rank's trouble. Otherwise each side could take the other for gone, and both go on.
type line struct {
	c       *Shrinker
	peer    int
	attempt uint32
	out     links.Outlet
	in      links.Inlet
	queue   []byte   // not sent yet
	got     []byte   // not read yet
	later   []notice // of the next agreement, which the peer is in already
	far     peerEnd
	via     connection
}

// peerEnd is what a line knows of its peer.
type peerEnd struct {
	gone bool // it has ended, or has closed the Comm
	done bool // its part in the agreement is over, with success
	quit bool // or given up
}

// over reports whether nothing more is to come of the peer.
func (p *peerEnd) over() bool { return p.gone || p.done || p.quit }

// connection is a line's to a rank of another host, and the dial that makes it anew.
type connection struct {
	conn    *tcp.Conn
	dialed  chan dialed        // of the dial under way
	stop    context.CancelFunc // of that dial
	probing bool               // it is to find out whether the peer is there
	renewed bool               // the connection is a new one: what was said may be lost
	heard   time.Duration      // when something came last, or was begun anew, in lived time
	trouble error              // why this rank cannot connect with anybody
}

// dialed is how a dial has ended.
type dialed struct {
	conn *tcp.Conn
	err  error
}

// newLine returns the line to a rank. Those inside a host stay with the Comm, since a pipe
// is made once.
func (c *Shrinker) newLine(peer int, attempt uint32) *line {
	if l := c.talks[peer]; l != nil {
		l.attempt = attempt
		return l
	}
	l := &line{c: c, peer: peer, attempt: attempt, via: connection{heard: c.rank.Site.Job.Time.Lived.Now()}}
	if l.inside() {
		if c.talks == nil {
			c.talks = map[int]*line{}
		}
		c.talks[peer] = l
	} else {
		l.dial(false)
	}
	return l
}

func (l *line) inside() bool { return l.c.rank.Group.IsHere(l.peer) }

// agreementID is the Comm's id for the connections of an agreement, which are not those
// of its calls.
func (c *Shrinker) agreementID(attempt uint32) uint64 {
	return group.ChildID(c.rank.Group.ID(), uint64(attempt)|1<<41, 0)
}

// Leave tells ranks that still want to take part in an agreement with this one why it does not.
func (c *Shrinker) Leave(attempt uint32, leave func(n *tcp.Node, comm uint64, rank uint32)) {
	if c.rank.Site.Job.Net.TCP != nil && c.rank.Group.Topology().Nodes() > 1 {
		leave(c.rank.Site.Job.Net.TCP, c.agreementID(attempt), uint32(c.rank.Group.Rank()))
	}
}

// The streams between two ranks.
const (
	linesOf uint32 = iota
	probesOf
)

// dial connects in the background; as a probe only to see that the peer's process answers.
func (l *line) dial(probe bool) {
	stream := linesOf
	if probe {
		stream = probesOf
	}
	key := tcp.MakeKey(l.c.agreementID(l.attempt), stream, uint32(l.c.rank.Group.Rank()), uint32(l.peer))
	w := l.c.rank.Group.World(l.peer)
	addr := l.c.rank.Site.Job.Net.Addrs.At(w)
	ctx, cancel := limited(l.c.rank.Site.Job.Background(), l.c.rank.Group.PeerTimeout())
	done := make(chan dialed, 1)
	l.via.dialed, l.via.stop, l.via.probing = done, cancel, probe
	node, me := l.c.rank.Site.Job.Net.TCP, uint32(l.c.rank.Group.Rank())
	go func() {
		conn, err := node.OpenNotices(ctx, key, me, addr, isOut)
		done <- dialed{conn, err}
	}()
}

// isOut says that a rank whose process no longer listens takes no part: it has ended, or has left
// in good order, and which of the two changes nothing here. So nobody is asked, and the first
// refusal is the last: a process listens before others know its address.
func isOut() bool { return true }

// settle takes note of a dial that has ended.
func (l *line) settle() {
	if l.via.dialed == nil {
		return
	}
	select {
	case d := <-l.via.dialed:
		l.via.stop()
		l.via.dialed = nil
		now := l.c.rank.Site.Job.Time.Lived.Now()
		silent := now - l.via.heard
		l.via.heard = now
		switch {
		case d.err == nil && l.via.probing:
			d.conn.Close()
		case d.err == nil:
			l.via.conn, l.out, l.in = d.conn, d.conn, links.Stream{Conn: d.conn}
			l.got, l.queue, l.via.renewed = nil, nil, true
		case errors.Is(d.err, tcp.ErrDone):
			l.far.done = true
		case errors.Is(d.err, tcp.ErrQuit):
			l.far.quit = true
		case errors.Is(d.err, tcp.ErrGone) || errors.Is(d.err, tcp.ErrRefused):
			l.far.gone = true
		case tcp.IsOwnTrouble(d.err):
			l.via.trouble = d.err
		case !errors.Is(d.err, context.DeadlineExceeded) || silent > l.c.rank.Group.PeerTimeout()*3/4:
			// the dial took all of it
			l.accuse(fmt.Errorf("it cannot be reached: %w", d.err))
		default: // this process was stopped meanwhile
			l.via.heard -= silent
		}
	default:
	}
}

// accuse tells all that the peer is lost.
func (l *line) accuse(why error) { l.c.rank.Site.Lost(l.c.rank.Group.World(l.peer), why) }

// dialAgain is when a line without a connection is dialed anew, after the last attempt.
const dialAgain = 250 * time.Millisecond

// put queues a notice of that kind as it is on the wire, and sends what it can.
func (l *line) put(kind agree.Kind, wire []byte) {
	if l.out == nil && !l.inside() { // it is said again when the connection is there
		return
	}
	l.queue = append(l.queue, wire...)
	l.push()
	switch kind {
	case agree.Alive: // which is read when something else comes
	case agree.Quit: // whatever the peer waits for
		if l.inside() {
			l.c.rank.RingRank(l.c.rank.Group.Topology().Local(l.peer))
		}
	default:
		l.ring()
	}
}

// ring wakes the peer, if it is on this host and sleeps until this rank says something.
func (l *line) ring() {
	if l.inside() {
		plane.RingFor(l.c.rank, l.c.rank.Group.Topology().Local(l.peer))
	}
}

// push sends what it can of what was said.
func (l *line) push() {
	if l.out == nil && l.inside() {
		p, err := l.c.links.Ends.PipeTo(l.c.rank.Group.Topology().Local(l.peer), links.Agreements)
		if err != nil {
			return // tried again
		}
		l.out = p
	}
	for len(l.queue) > 0 && l.out != nil {
		n, err := l.out.TrySend(l.queue)
		if err != nil {
			l.broken()
			return
		}
		if n == 0 {
			return
		}
		l.queue = l.queue[n:]
	}
}

// broken dials anew: that says whether the peer is still there.
func (l *line) broken() {
	if l.via.conn != nil {
		l.via.conn.Close()
	}
	l.via.conn, l.out, l.in, l.got, l.queue = nil, nil, nil, nil, nil
	if l.via.dialed == nil {
		l.dial(false)
	}
}

// hear returns the next notice, if one has come.
func (l *line) hear() (notice, bool) {
	l.settle()
	if len(l.later) > 0 && l.later[0].attempt <= l.attempt {
		n := l.later[0]
		l.later = l.later[1:]
		return n, true
	}
	if l.in == nil && l.inside() {
		if p, err := l.c.links.Ends.PipeFrom(l.c.rank.Group.Topology().Local(l.peer), links.Agreements); err == nil &&
			p != nil {
			l.in = p
		}
	}
	if l.in != nil {
		var b [4 << 10]byte
		n, err := l.in.TryRecv(b[:])
		l.got = append(l.got, b[:n]...)
		if n > 0 {
			l.via.heard = l.c.rank.Site.Job.Time.Lived.Now()
		}
		note, taken, bad := parseNotice(l.got, l.c.rank.Group.Size())
		switch {
		case bad != nil && l.inside():
			l.got = nil
			l.accuse(bad)
		case bad != nil:
			l.broken()
		case taken > 0:
			l.got = l.got[taken:]
			if note.attempt > l.attempt {
				l.later = append(l.later, note)
				return notice{}, false
			}
			return note, true
		case err != nil && (errors.Is(err, io.EOF) || n == 0):
			l.broken()
		}
	}
	if !l.inside() && l.via.dialed == nil && !l.far.over() && l.via.trouble == nil {
		silent := l.c.rank.Site.Job.Time.Lived.Now() - l.via.heard
		if t := l.c.rank.Group.PeerTimeout(); l.via.conn != nil && t > 0 && silent > t {
			l.via.heard += silent
			l.dial(true)
		} else if l.via.conn == nil && silent > dialAgain {
			l.dial(false)
		}
	}
	return notice{}, false
}

// flush waits until all that was said has left, for a moment at most.
func (l *line) flush() {
	for range 100 {
		if l.push(); len(l.queue) == 0 || l.out == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// close ends the line. The Comm keeps its pipes.
func (l *line) close() {
	if l.via.dialed != nil {
		l.via.stop()
		if d := <-l.via.dialed; d.conn != nil {
			d.conn.Close()
		}
		l.via.dialed = nil
	}
	if l.via.conn != nil {
		l.via.conn.Close()
		l.via.conn, l.out, l.in = nil, nil, nil
	}
}
