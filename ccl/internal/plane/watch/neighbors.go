package watch

import (
	"bufio"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// Neighbors are the connections of a host with others, which Job.Mu guards. Only the process that
// leads the host has any.
type Neighbors struct {
	host    *Host
	Conns   []*control.Conn
	joining map[int]bool  // ranks of the world to which a connection is being made
	Joined  bool          // the host has been connected first
	heard   map[int]heard // by host: what has come from it
}

// Init makes s those of h.
func (s *Neighbors) Init(h *Host) { s.host, s.joining, s.heard = h, map[int]bool{}, map[int]heard{} }

// Beside lists the hosts that this one has connections with.
func (s *Neighbors) Beside() []int {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.host.World.Neighbors(s.host.Node)
}

// Claim reports whether a connection with the process whose lowest rank is w is to be made: Add is to follow.
func (s *Neighbors) Claim(w int) bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	if s.joining[w] || s.host.World.Leaves ||
		slices.ContainsFunc(s.Conns, func(c *control.Conn) bool { return c.First == w }) {
		return false
	}
	s.joining[w] = true
	return true
}

// Add makes c, the connection with the process whose lowest rank is w, one of this host's, counts it
// in begun, and returns all that has happened so far, which w is to be told. It is false where there
// is no connection, or this process leaves. Its callers hold the lock that orders events.
func (s *Neighbors) Add(c *control.Conn, w int, begun *sync.WaitGroup) (known []event.Event, ok bool) {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	delete(s.joining, w)
	if c == nil || s.host.World.Leaves {
		return nil, false
	}
	s.Conns = append(s.Conns[:len(s.Conns):len(s.Conns)], c)
	begun.Add(1)
	return s.host.World.Events.All(), true
}

// Drop takes a neighbor away.
func (s *Neighbors) Drop(c *control.Conn) {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	i := slices.Index(s.Conns, c)
	if i >= 0 {
		s.Conns = append(s.Conns[:i:i], s.Conns[i+1:]...)
	}
	c.Stream.Close()
}

// Next waits for the next frame of a neighbor, and reads it from in into buf.
func (s *Neighbors) Next(c *control.Conn, in *bufio.Reader, buf []byte) (kind byte, body []byte, err error) {
	if err = s.await(c, in, control.FrameHead); err == nil {
		head, _ := in.Peek(control.FrameHead)
		err = s.await(c, in, min(int(binary.LittleEndian.Uint16(head)), control.FrameMax))
	}
	if err != nil {
		return 0, nil, err
	}
	return control.ReadFrame(in, buf) // which is there
}

// await waits for n bytes to come from a neighbor, for PeerTimeout at most, in lived time.
func (s *Neighbors) await(c *control.Conn, in *bufio.Reader, n int) error {
	j := s.host.Job
	if *j.Peer <= 0 || s.host.Ending() {
		if !s.host.Ending() {
			c.Stream.SetReadDeadline(time.Time{})
		}
		_, err := in.Peek(n)
		return err
	}
	for until := j.Lived.Now() + *j.Peer; ; {
		left := until - j.Lived.Now()
		c.Stream.SetReadDeadline(time.Now().Add(max(left, readAgain)))
		// A read past its deadline fails even if bytes have arrived, so the last look has a short deadline of its own.
		if _, err := in.Peek(n); left <= 0 || s.host.Ending() || !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
	}
}

// readAgain is how long a neighbor that seems to be silent is listened to once more.
const readAgain = 100 * time.Millisecond

// Beat tells the neighbors that this host is alive.
func (s *Neighbors) Beat() {
	for _, c := range s.All() {
		c.Beat()
	}
}

// Flush sends the neighbors what is kept for them, and reports whether some of it could not go yet.
func (s *Neighbors) Flush() (more bool) {
	for _, c := range s.All() {
		more = c.Flush() || more
	}
	return more
}

// All are all of them. The list does not change.
func (s *Neighbors) All() []*control.Conn {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.Conns
}

// Through are those of the neighbors that a frame is to go through; all, once a lead has gone,
// since the tree does not reach all then.
func (s *Neighbors) Through(way func(*control.Conn) bool) []*control.Conn {
	all := s.All()
	if s.isBroken() {
		return all
	}
	var some []*control.Conn
	for _, c := range all {
		if way(c) {
			some = append(some, c)
		}
	}
	return some
}

// Onward is where a status goes from here: to the other hosts over the tree, or to all neighbors
// once a lead has gone, since the tree does not reach all then. One that is for the report alone
// goes to the host whose process gives that: after a loss all ranks tell at once where they stood,
// and are to hear of it, and to go on, meanwhile.
func (s *Neighbors) Onward(st *status.Status) (to []*control.Conn, tree bool) {
	if !st.Report {
		return s.All(), !s.isBroken()
	}
	switch c, here := s.towardsReport(); {
	case here:
		return nil, false
	case c != nil:
		return []*control.Conn{c}, false
	}
	return s.All(), false
}

// towardsReport is the neighbor through which the report of where all ranks stood is reached: its
// host itself, or the next one in the tree. It is nil where that is not known to be there, and
// where this host gives the report.
func (s *Neighbors) towardsReport() (c *control.Conn, here bool) {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	w := s.host.World
	to := w.ReportingHost()
	if to == s.host.Node {
		return nil, true
	}
	for _, h := range []int{to, control.Towards(s.host.Node, to)} {
		i := slices.IndexFunc(s.Conns, func(c *control.Conn) bool {
			return c.Host == h && !w.IsAway(c.First) && !w.Of(c.First).Reported
		})
		if i >= 0 {
			return s.Conns[i], false
		}
	}
	return nil, false
}

// isBroken reports whether a lead has gone: then the tree does not reach all.
func (s *Neighbors) isBroken() bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.host.World.LeadHasGone()
}

// AreEnding is gone.Ranks.IsEnding of host h, as this one sees it.
func (s *Neighbors) AreEnding(h int) bool {
	s.host.Mu.Lock()
	defer s.host.Mu.Unlock()
	return s.host.World.IsEnding(h, s.host.Node, len(s.Conns) == 0)
}

// AwaitLead reports whether the lead of this host has gone, and the next has not come to them. Job.Mu is held.
func (s *Neighbors) AwaitLead() bool {
	w, h := s.host.World, s.host.Node
	return len(s.Conns) > 0 && w.Absence(h) != gone.Present && w.Lead(h) >= 0
}

// AreFollowed reports whether there are any, so that the job has begun and a monitor runs, and another process of
// this host is there, to which they will belong if this one leaves.
func (s *Neighbors) AreFollowed() bool {
	h := s.host
	h.Mu.Lock()
	defer h.Mu.Unlock()
	return len(s.Conns) > 0 && slices.ContainsFunc(h.World.Staying(h.Node), func(w int) bool {
		return !h.IsMine(w) && !h.Processes.HasLeft(w)
	})
}
