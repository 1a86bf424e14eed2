package links

import (
	"context"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/lived"
)

// Large messages between hosts are spread over several connections, which are called lanes here.
// One connection carries at most what its buffers hold in each round trip, and some clouds limit
// each flow; several connections carry as much each.
//
// Each lane is a link, and takes a share of the message, one piece of it, with a header of its own:
// turns, protection, checksums, farewells and failures are those of any message. The sender decides
// how many lanes there are, and says so in the header; the receiver, which learns it from the first
// lane, then receives on the others as well. So this is a matter of two ranks, and may follow from
// what one of them has measured.

const (
	lanesMost = 16

	laneLeast = tuning.SyscallPiece // the smallest share: what comes with the header of the first lane is of its own share

	laneTrip = 2 * time.Millisecond // for each so long that a round trip takes, a lane pays
	tripMost = 8                    // lanes, where nobody has said how many

	laneWait = 2 * time.Second // for a lane more: the peer, or a wall between, may take no further connections
)

// share returns piece lane of lanes, about equal ones of a message, and where it begins. Pieces
// begin at multiples of the size of every element.
func share(b []byte, lanes, lane int) (from int, part []byte) {
	const align = 4096
	size := (len(b)/lanes + align - 1) / align * align
	if lane == lanes-1 {
		return lane * size, b[lane*size:]
	}
	return lane * size, b[lane*size : (lane+1)*size]
}

// LinkFor is Link for a message of so many bytes to peer. With the first that is large it opens the lanes.
func (c *ends) LinkFor(ctx context.Context, peer int, cl class, bytes int) (*Link, *call.Fault) {
	l, f := c.Link(ctx, peer, cl)
	if f != nil || bytes < 2*laneLeast || l.conn == nil || l.lanes != nil {
		return l, f
	}
	lanes := make([]*Link, lanesFor(l.conn.RoundTrip(), environ.Sockets.Get()))
	lanes[0] = l
	limited, cancel := lived.Within(ctx, laneWait)
	defer cancel()
	errs := make([]error, len(lanes))
	var all sync.WaitGroup // each takes round trips
	for n := 1; n < len(lanes); n++ {
		if x := c.made[linkKey{int32(l.peer), l.class, uint8(n)}]; x != nil {
			lanes[n] = x
			continue
		}
		all.Go(func() {
			x := &Link{peer: l.peer, class: l.class}
			if errs[n] = c.dial(limited, x, uint8(n)); errs[n] == nil {
				lanes[n] = x
			}
		})
	}
	all.Wait()
	late := limited.Err() != nil && ctx.Err() == nil && c.rank.Fate.Cause() == nil
	for n, x := range lanes {
		if x != nil && n > 0 {
			c.made[linkKey{int32(l.peer), l.class, uint8(n)}] = x
		}
	}
	for n, err := range errs {
		if err == nil {
			continue
		}
		if !late && !tcp.IsOwnTrouble(err) {
			return nil, c.notDialed(ctx, l.peer, err)
		}
		lanes = lanes[:n] // no more files here, or there: fewer lanes do
		break
	}
	l.lanes = lanes
	return l, nil
}

// lanesFor is how many lanes large messages take to a rank so far away, where the user has asked
// for so many, or for none.
func lanesFor(roundTrip time.Duration, asked int) int {
	if asked > 0 {
		return min(asked, lanesMost)
	}
	return min(max(int(roundTrip/laneTrip), 1), tripMost)
}

// lanesOf is how many lanes a message takes; 0 is one that is not spread. Shares of a mean are
// counted for a message as a whole.
func (l *Link) lanesOf(h *head, bytes int) uint8 {
	if n := min(len(l.lanes), bytes/laneLeast); n > 1 && h.shares == 0 {
		return uint8(n)
	}
	return 0
}

// openLane returns one of the lanes whose first is l.
func (c *ends) openLane(ctx context.Context, l *Link, lane int) (*Link, error) {
	key := linkKey{int32(l.peer), l.class, uint8(lane)}
	if x := c.made[key]; x != nil {
		return x, nil
	}
	x := &Link{peer: l.peer, class: l.class}
	if err := c.dial(ctx, x, uint8(lane)); err != nil {
		return nil, err
	}
	c.made[key] = x
	return x, nil
}

// spread adds the senders of the other lanes, for each message that takes several.
func (c *messages) spread() {
	for i := range len(c.tx) {
		s := c.tx[i]
		lanes := s.spread.head.lanes
		s.spread.head.lanes = 0
		for last, lane := s, uint8(1); lane < lanes; lane++ {
			h := s.spread.head
			h.lanes, h.lane = lanes, lane
			from, part := share(s.spread.whole, int(lanes), int(lane))
			x := c.newSender()
			x.begin(s.l.lanes[lane], &h, part)
			x.spread.from, x.behind, x.of = from, s.behind, s.of
			last.spread.next, last = x, x
		}
		s.spread.whole = nil
	}
}

// spreading is what a sender has of a message that is spread, of which it sends a share.
type spreading struct {
	head  head   // of the first lane, until the others are begun
	whole []byte // the message
	from  int    // where the share begins
	next  *sender
}

// allDone reports whether the whole message has left of which s is the first share.
func (s *sender) allDone() bool {
	for ; s != nil; s = s.spread.next {
		if !s.done {
			return false
		}
	}
	return true
}

// movedFrom is how many bytes from there on have left, of the whole message of which s is the first share.
func (s *sender) movedFrom(at int) int {
	end := at
	for ; s != nil && s.spread.from <= end; s = s.spread.next {
		end = max(end, s.spread.from+s.moved())
	}
	return end - at
}

// gathering is what a receiver has of a message that is spread, of which it receives a share.
type gathering struct {
	lanes      int // of the first share; 0 if the message is not spread, or not known to be
	whole, own []byte
	from       int // where the share begins
	next       *receiver
}

// narrow has r, which has learned that its message is spread over so many lanes, receive the share of the first.
func (r *receiver) narrow(lanes int) {
	r.spread.lanes, r.spread.whole, r.spread.own = lanes, r.to, r.fold.own
	_, r.to = share(r.to, lanes, 0)
}

// gather adds the receivers of the other lanes of r's message, once that is known to be spread.
func (c *messages) gather(ctx context.Context, r *receiver) *call.Fault {
	if r.spread.lanes == 0 || r.spread.next != nil {
		return nil
	}
	for last, lane := r, 1; lane < r.spread.lanes; lane++ {
		l, err := c.ends.openLane(ctx, r.l, lane)
		if err != nil {
			return c.ends.notDialed(ctx, r.l.peer, err)
		}
		want := r.head.want
		want.lanes, want.lane = uint8(r.spread.lanes), uint8(lane)
		from, part := share(r.spread.whole, r.spread.lanes, lane)
		x := c.newReceiver()
		x.start(l, want, part)
		x.head.want.bytes = want.bytes
		x.spread.from, x.after, x.prev, x.of = from, r.after, r.prev, r.of
		x.fold = r.fold
		x.fold.carried = 0
		if r.fold.fn != nil {
			_, x.fold.own = share(r.spread.own, r.spread.lanes, lane)
		}
		last.spread.next, last = x, x
	}
	return nil
}

// allDone reports whether the whole message has come of which r is the first share.
func (r *receiver) allDone() bool {
	if r.spread.lanes > 0 && r.spread.next == nil {
		return false
	}
	for ; r != nil; r = r.spread.next {
		if !r.done {
			return false
		}
	}
	return true
}
