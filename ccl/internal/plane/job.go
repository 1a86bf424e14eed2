package plane

import (
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/clock"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/algo"
)

// Job is what the ranks of one job that live in this process have in common.
type Job struct {
	id string
	clock.Coarse
	Order    sync.Mutex  // of what is believed
	Lived    clock.Lived // of this process
	naps     proc.Napper
	Courtesy courtesy

	// Set once, by the first rank that comes by.
	Topo  algo.Topology
	Addrs []netip.AddrPort // by rank; nil on a single host
	iface string           // that it listens at
	TCP   *tcp.Node
	peer  time.Duration // Options.PeerTimeout of the first Comm

	here   atomic.Int32 // ranks in this process
	refs   int          // Comms and joining ranks, under jobs.mu
	StopCh chan struct{}
	Wg     sync.WaitGroup

	steps     map[string]*step // of joining, under mu
	mu        sync.Mutex
	comms     map[uint64][]*Member
	undecided event.Sequencer
	dead      map[int]bool    // ranks of the world that are known to be lost
	leavers   map[int]bool    // ranks of the world that are known to have left in good order
	fallen    map[int]bool    // those that are said to be lost, whether that is believed yet or not
	first     map[int]int     // by host, which of its ranks leads it, where that is not the first: see succeed.go
	vacant    map[int]absence // hosts whose lead has gone, and the next has not come
	brokenAt  int64           // when the first failure was heard of, since the last picture; 0: none
	Statuses  status.Table
	watch     monitored
	sites     map[int]*Site
	all       []*Site // the same
	leaving   bool
}

// Site is this process's part in one host of its job. A process has one, unless its
// ranks were told to count as on several hosts.
type Site struct {
	*Job
	Node int

	// Set once, by the first rank that comes by.
	Mine  int   // the lowest rank of this process on the host
	Procs []int // by rank of this host, the lowest rank of its process
	Host  *shm.Host

	// Guarded by Job.mu.
	scanned atomic.Uint64 // of the host's log
	kept    struct {      // what it had no room for yet; locked before Job.mu
		sync.Mutex
		events []event.Event
	}
	numbers   atomic.Uint32 // of this process's events
	proposals event.Proposals
	passed    event.Seen
	pulses    []pulse
	pulse     *pulse // this process's
	others    []watched
	guarded   bool // this process is told when the next of the others ends; the monitor's
	control   []*control.Conn
	joining   map[int]bool // ranks of the world to which a connection is being made
	inPlane   bool         // it has been connected first
	seen      status.Seen  // which statuses have come
	boardRead uint64       // of the host's statuses; the monitor's
	unix      []*net.UnixConn
	entrance  Entrance
	Ringer    atomic.Pointer[ringer] // nil: the monitor never idles
	Attending sync.WaitGroup         // goroutines at the door and at the ends of unix: they use host
}

// Site returns this process's part in host node.
func (j *Job) Site(node int) *Site {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sites[node]
	if s == nil {
		s = &Site{Job: j, Node: node, joining: map[int]bool{}}
		j.sites[node] = s
		j.all = append(j.all[:len(j.all):len(j.all)], s) // a new list: others hold the old one
	}
	return s
}

// siteList lists the sites of this process.
func (j *Job) Sites() []*Site {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all
}

// step is what one rank of this process does for all.
type step struct {
	sync.Once
	err error
}

// Once runs f for the first rank of this process that comes to the step of that name, and returns its error to all.
func (j *Job) Once(name string, f func() error) error {
	j.mu.Lock()
	s := j.steps[name]
	if s == nil {
		s = new(step)
		j.steps[name] = s
	}
	j.mu.Unlock()
	s.Do(func() { s.err = f() })
	return s.err
}

// jobs are the jobs this process takes part in: what a process has one of.
var jobs = struct {
	sync.Mutex
	m map[string]*Job
}{m: map[string]*Job{}}

// leastSilence is the shortest silence that makes a process or a host lost, whatever Options.PeerTimeout: four beats, since
// one may be late on a busy machine.
const leastSilence = 4 * BeatEvery

// EnterJob returns the job of that id, with one more rank in it. Silence of peer, at least leastSilence if there is a limit
// at all, makes a process or a host lost.
func EnterJob(id string, peer time.Duration) *Job {
	jobs.Lock()
	defer jobs.Unlock()
	j := jobs.m[id]
	if j == nil {
		if peer > 0 {
			peer = max(peer, leastSilence)
		}
		j = &Job{id: id, peer: peer, StopCh: make(chan struct{}), comms: map[uint64][]*Member{}, steps: map[string]*step{}, sites: map[int]*Site{},
			dead: map[int]bool{}, leavers: map[int]bool{}, fallen: map[int]bool{}, first: map[int]int{}, vacant: map[int]absence{},
		}
		j.Start()
		j.naps.Open()
		jobs.m[id] = j
	}
	j.refs++
	j.here.Add(1)
	return j
}

// Hold adds a Comm to what keeps the job alive.
func (j *Job) Hold() {
	jobs.Lock()
	j.refs++
	jobs.Unlock()
}

// tryHold is hold, unless the job has ended in this process.
func (j *Job) tryHold() bool {
	jobs.Lock()
	defer jobs.Unlock()
	if j.refs == 0 {
		return false
	}
	j.refs++
	return true
}

// Leave takes one away; the last ends the job in this process.
func (j *Job) Leave() {
	jobs.Lock()
	j.refs--
	last := j.refs == 0
	if last {
		delete(jobs.m, j.id)
	}
	jobs.Unlock()
	if last {
		j.close()
	}
}

// deadline returns a function that reports whether this process has lived for d since, or is about to leave its job, after
// which its time stands still. A wait for what other processes are to say ends so: what they said during a pause is read
// before it is over.
func (j *Job) deadline(d time.Duration) (over func() bool) {
	until := j.Lived.Now() + d
	return func() bool {
		select {
		case <-j.StopCh:
			return true
		default:
			return j.Lived.Now() >= until
		}
	}
}

func (j *Job) close() {
	j.mu.Lock()
	j.leaving = true
	j.mu.Unlock()
	for _, s := range j.Sites() {
		s.drainKept()
	}
	close(j.StopCh)
	for _, s := range j.Sites() {
		s.hidePulse()
		s.mu.Lock()
		watched, d := slices.Clone(s.unix), s.entrance // and no more of them: this process leaves
		s.mu.Unlock()
		for _, c := range watched {
			closeInOrder(c)
		}
		if d != nil {
			d.Shut()
		}
		for _, c := range s.neighbors() {
			c.Bye()
		}
	}
	j.Wg.Wait()
	for _, s := range j.Sites() {
		s.CloseRinger()
		s.Attending.Wait()
	}
	j.naps.Close()
	if j.TCP != nil {
		j.TCP.Close()
	}
	for _, s := range j.Sites() {
		if s.Host != nil {
			s.Host.Close()
		}
	}
}

// Ended is what package proc calls when the process that this one watches has ended: the monitor looks at once.
func (j *Job) Ended() { j.WakeMonitor() }

// How often a rank looks at a flag before it gives way: hardly at all where ranks outnumber processors, since then the rank
// that it waits for may need its processor.
const (
	spinsAlone   = 1024
	SpinsCrowded = 16
)

// spins is that number for the ranks of this host.
func (s *Site) spins() int {
	if s.Topo.Locals(s.Node) > s.Host.Processors() || int(s.here.Load()) > runtime.GOMAXPROCS(0) {
		return SpinsCrowded
	}
	return spinsAlone
}

// add makes c known to the monitor. A failure that came before it did counts.
func (j *Job) add(c *Member) {
	j.mu.Lock()
	j.comms[c.id] = append(j.comms[c.id], c)
	j.mu.Unlock()
	for _, e := range j.undecided.History() {
		if call.Code(e.Code) <= call.Closed {
			j.failMember(c, &e)
		}
	}
}

func (j *Job) Remove(c *Member) {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.comms[c.id]
	for i, x := range list {
		if x == c {
			j.comms[c.id] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if len(j.comms[c.id]) == 0 {
		delete(j.comms, c.id)
		j.Statuses.Forget(c.id)
	}
	switch {
	case j.TCP == nil:
	case c.Cause.Load() == nil:
		j.TCP.Forget(c.id, uint32(c.rank))
	default: // the others are to learn why, not that this one left
		j.TCP.Fail(c.id, uint32(c.rank))
	}
}

// checkMembers looks after the calls that wait, and reports whether there are any.
func (j *Job) checkMembers(now int64) (waits bool) {
	j.mu.Lock()
	all := j.watch.members[:0]
	for _, list := range j.comms {
		all = append(all, list...)
	}
	j.mu.Unlock()
	for _, c := range all {
		if c.asked.CompareAndSwap(true, false) {
			c.note.Lock()
			c.note.heardAt = now
			c.note.Unlock()
		}
		c.WakeCall()
		c.checkAbortWord(j.Lived.Now())
		c.watchForeign(now)
		c.check(now)
		waits = waits || c.needsMonitor()
	}
	clear(all)
	j.watch.members = all
	return waits
}

// Listen begins to listen for other hosts at addr, which is that of an interface. secret is the job's, nil if it has none.
func (j *Job) Listen(iface string, addr netip.Addr, secret []byte) (err error) {
	j.iface = iface
	j.TCP, err = tcp.Listen(j.id, secret, addr)
	return err
}

// StartMonitor lets the monitor begin, once all have their memory.
func (j *Job) StartMonitor() {
	for _, s := range j.Sites() {
		if s.entrance != nil {
			s.entrance.Shut()
		}
		s.startSilence()
	}
	j.Wg.Add(1)
	go j.monitor()
}

// Reset drops what an unsuccessful try has left, once nobody uses it.
func (s *Site) Reset() {
	s.hidePulse()
	s.CloseRinger()
	s.mu.Lock()
	d, ends := s.entrance, s.unix
	s.entrance, s.unix = nil, nil
	s.mu.Unlock()
	if d != nil {
		d.Shut()
		d.Drop()
	}
	for _, c := range ends {
		closeInOrder(c)
	}
	s.Attending.Wait()
	s.kept.Lock()
	s.kept.events = nil
	s.kept.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scanned.Store(0)
	if s.Host != nil {
		s.Host.Close()
		s.Host = nil
	}
}
