package plane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/lived"
)

// The control plane joins the hosts of a job, independently of all data connections. Each host's
// first process has a connection to that of host (h-1)/2 and of hosts 2h+1 and 2h+2, a tree, and to
// the next two and the last two hosts on a ring: at most seven, whatever the number of hosts.
// Events flood it, each over every connection once: they reach all of n hosts in at most 2 log2 n
// hops. When the first process of a host is gone, the next takes its place (succession.go); when
// the host is, those beside it on the ring close the gap, so that what is left stays one. Until
// then statuses, of which there are many, go over the tree alone; one that only the report of where
// all ranks stood needs goes to the host whose process gives that, directly or through the tree,
// and else to all neighbors.

// controlStream is the stream number of these connections, of no Comm.
const controlStream = 0xc0

// JoinNeighbors connects this host with those beside it. From now on this process takes what others dial to it, too: it
// may come to speak for its host before it knows so.
func (s *Site) JoinNeighbors(ctx context.Context) error {
	if s.Job.World.Topo.Nodes() == 1 {
		return nil
	}
	s.Job.mu.Lock()
	s.Near.Joined = true
	s.Job.mu.Unlock()
	if s.Here.Leads() {
		if err := joinAll(ctx, s, s.Near.Beside()); err != nil {
			return err
		}
	}
	s.Job.Net.TCP.OnOffer(controlStream, s.Job.offered)
	answersAsked(s.Job)
	return nil
}

// joinAll connects this host with those, all at once: one that cannot be reached for a while keeps
// none of the others waiting, which would take this host for silent.
func joinAll(ctx context.Context, s *Site, hosts []int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, len(hosts))
	var all sync.WaitGroup
	for _, h := range hosts {
		all.Go(func() {
			if err := s.joinRank(ctx, s.Job.leadOf(h)); err != nil {
				failed <- err // the first is why the others end
				cancel()
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// joinRank connects with the process of rank w of the world, and tells it what has happened so far.
func (s *Site) joinRank(ctx context.Context, w int) error {
	if w < 0 || s.Job.World.Topo.Node(w) == s.Here.Node {
		return nil
	}
	w = s.Job.Net.ranksAlong(s.Job.World.Topo, w)[0] // both ends name a process alike
	if !s.Near.Claim(w) {
		return nil
	}
	c, err := s.Job.Net.openControl(ctx, s.Here.Mine, w, s.Job.World.Topo.Node(w))
	switch {
	case s.greet(c, w):
		go s.listenTo(c)
	case err == nil:
		c.ByeAndClose()
	}
	return err
}

// greet makes c, the connection with the process of rank w of the world, one of this host's, and
// tells it what has happened so far: of what is believed after that it hears later. It is false
// where there is no connection, or this process leaves.
func (s *Site) greet(c *control.Conn, w int) bool {
	s.Job.Order.Lock()
	defer s.Job.Order.Unlock()
	known, ok := s.Near.Add(c, w, &s.Job.Life.Wg)
	if ok {
		c.Greet(known)
	}
	return ok
}

// openControl opens the control connection of the process whose lowest rank is me with that of rank w, on that host.
func (n *network) openControl(ctx context.Context, me, w, host int) (*control.Conn, error) {
	key := tcp.MakeKey(0, controlStream, uint32(me), uint32(w))
	conn, err := n.TCP.OpenControl(ctx, key, uint32(me), n.Addrs.At(w))
	if err != nil {
		var u *tcp.Unmade
		if errors.As(err, &u) {
			err = fmt.Errorf("%w. The hosts of a job must reach each other: GOCCL_SOCKET_IFNAME selects interfaces, and bench doctor tries all ways", u)
		}
		return nil, fmt.Errorf("no control connection to rank %d: %w", w, err)
	}
	return &control.Conn{Stream: conn, Host: host, First: w}, nil
}

// offered takes the control connection that another process has dialed to rank self of this one: it has come to
// speak for its host, and this process has not heard so, or it has heard before this process has that this one does.
func (j *Job) offered(key tcp.Key, self uint32) {
	ctx, cancel := lived.Within(j.Background(), time.Second)
	defer cancel()
	w := int(key.A ^ key.B ^ self)
	for _, s := range j.Sites() {
		if s.Here.Mine != int(self) || w >= j.World.Topo.Size() {
			continue
		}
		if !s.Here.Ending() {
			_ = s.joinRank(ctx, w) // who has dialed will dial again, or be found to be gone
		} else if c, err := j.Net.openControl(ctx, s.Here.Mine, w, j.World.Topo.Node(w)); err == nil {
			c.ByeAndClose()
		}
	}
}

// listenTo takes what comes from a neighbor, and reports its end.
func (s *Site) listenTo(c *control.Conn) {
	defer s.Job.Life.Wg.Done()
	in, buf := bufio.NewReader(c.Stream), make([]byte, control.FrameMax)
	var e event.Event
	var st status.Status
	for spoken := false; ; spoken = true {
		kind, body, err := s.Near.Next(c, in, buf)
		switch {
		case err == nil && kind == control.FrameEvent:
			if err = e.Decode(body); err == nil {
				s.receiveEvent(&e, c)
			}
		case err == nil && kind == control.FrameStatus:
			if err = st.Decode(body); err == nil {
				s.receiveStatus(&st, c, true)
			}
		case err == nil && kind == control.FrameBye:
			s.Near.Drop(c)
			if !s.Here.Ending() {
				s.Post(event.New(0, event.ProcessLeft, c.First, -1, c.Host, nil))
			}
			return
		}
		if err == nil {
			s.Near.Hear(c.Host)
			continue
		}
		var ne net.Error
		switch timeout := errors.As(err, &ne) && ne.Timeout(); {
		case s.Here.Ending():
			s.Near.Drop(c)
		case timeout:
			s.giveNeighborUp(c, fmt.Errorf("its host has been silent for %v", s.Job.peer))
		case errors.Is(err, auth.ErrChanged):
			s.giveNeighborUp(c, fmt.Errorf("%w from rank %d (host %d) to rank %d (host %d)", auth.ErrChanged, c.First, c.Host,
				s.Here.Mine, s.Here.Node))
		case s.Job.isKnownAway(c.First) || s.isGivenUp(): // given up, the others end their connections with this process
			s.Near.Drop(c)
		case !spoken:
			s.Near.Drop(c)
			s.checkCutShort(c.First)
		default:
			s.Near.Drop(c)
			refused := s.Job.Net.TCP.Refuses(s.Job.Net.Addrs.At(c.First), refusesWithin)
			if refused || !rejoin(s, c.First) {
				s.lostNeighbor(c, throughRelay(c.Stream, endOf(s, c.First, refused)))
			}
		}
		return
	}
}

// rejoin connects once more with the process of rank w of the world, whose connection has ended
// without a word, though somebody still listens there. Where it was reset on the way the process
// lives, and has heard the same: both then tell each other all that has happened so far.
func rejoin(s *Site, w int) bool {
	if inject.Wrong("plane.rejoin") {
		return false
	}
	ctx, cancel := lived.Within(s.Job.Background(), rejoinFor)
	defer cancel()
	go func() {
		select {
		case <-s.Job.Life.StopCh:
			cancel()
		case <-ctx.Done():
		}
	}()
	return s.joinRank(ctx, w) == nil
}

// rejoinFor is how long that may take.
const rejoinFor = time.Second

// refusesWithin is how long a host may take to refuse a connection whose process has ended there.
const refusesWithin = 250 * time.Millisecond

// lostNeighbor reports the ranks of the process at the other end of c.
func (s *Site) lostNeighbor(c *control.Conn, why error) {
	for _, w := range s.Job.Net.ranksAlong(s.Job.World.Topo, c.First) {
		s.Lost(w, why)
	}
}

// giveNeighborUp reports a neighbor that is not listened to any more. The connection stays until
// that is believed: the process at its other end may only be stopped, and is to find there what it
// is itself before it finds the end of the connection, for which it would have to blame this
// process.
func (s *Site) giveNeighborUp(c *control.Conn, why error) {
	defer s.Near.Drop(c)
	s.lostNeighbor(c, why)
	for over := briefly(s.Job, 2*SettleFor); !over() && !s.Job.IsLost(c.First) && !s.Here.Ending(); {
		time.Sleep(tick)
	}
	_ = c.Stream.CloseWrite()
}

// receiveEvent puts an event that came from a neighbor in the order of this host, where it is passed on.
func (s *Site) receiveEvent(e *event.Event, from *control.Conn) {
	if call.Code(e.Code) == event.Voted {
		s.countVote(e, from)
		s.reconsider()
		return
	}
	s.Job.mu.Lock()
	stale := s.Job.World.IsStale(e)
	s.Job.mu.Unlock()
	if !stale && s.flood.Receive(e, from) {
		s.publish(*e)
	}
}

// receiveStatus takes in what a rank tells, and passes it on: from is the neighbor it came from, nil for this
// host; aloud says that the other processes of this host have not heard it.
func (s *Site) receiveStatus(st *status.Status, from *control.Conn, aloud bool) {
	on, first := s.flood.Status(st, from)
	if !first {
		return
	}
	s.Job.Time.Coarse.KeepAwake()
	if aloud && s.Here.Host.Shared() && (!st.Report || from == nil || reporterIsBeside(s)) {
		s.Here.Log.Tell(st)
	}
	if s.Here.Leads() {
		if all, tree := s.Near.Onward(st); tree {
			on.ToTree(all, s.Here.Node)
		} else {
			on.To(all)
		}
	}
	s.Job.Statuses.Keep(st, s.Job.Clock())
	s.Job.mu.Lock()
	var few [8]*Member
	mine := append(few[:0], s.Job.comms[st.Comm]...)
	s.Job.mu.Unlock()
	for _, c := range mine {
		c.checkAgainst(st)
		if !st.Brief && st.Doing == status.Waits && int(st.Rank) != c.Group.Rank() {
			c.Standing.asked.Store(true)
		}
	}
}

// checkAgainst compares this rank's calls with what another has told.
func (c *Member) checkAgainst(other *status.Status) {
	if int(other.Rank) == c.Group.Rank() || c.Group.Unchecked() || c.Fate.cause.Load() != nil || other.Calls == 0 ||
		other.Call.Kind.Pairwise() {
		return
	}
	var mine call.Record
	ok := false
	c.Share.Look(func() { mine, ok = c.Share.Local.Made(c.Share.Me, other.Calls) })
	if ok && mine.Hash != other.Hash {
		go c.Fail(Disagree(mine, other.Call, int(other.Rank)))
	}
}
