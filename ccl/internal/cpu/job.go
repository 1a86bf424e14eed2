package cpu

import (
	"math"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/algo"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// job is what the ranks of one job that live in this process have in common.
type job struct {
	id   string
	born time.Time
	now  atomic.Int64 // coarse time since born, in nanoseconds

	// Set once, by the first rank that comes by.
	tries [3]step
	last  step
	topo  algo.Topology
	addrs []netip.AddrPort // by rank; nil on a single host
	tcp   *tcp.Node
	iface string
	peer  time.Duration // Options.PeerTimeout of the first Comm

	here   atomic.Int32 // ranks in this process
	refs   int          // Comms and joining ranks, under jobs.mu
	stopCh chan struct{}
	wg     sync.WaitGroup

	mu      sync.Mutex
	comms   map[uint64][]*Comm
	history []event // the last events, for Comms that are about to be made
	sites   map[int]*site
	all     []*site // the same
	leaving bool
}

// site is this process's part in one host of its job. A process has one, unless its
// ranks were told to count as on several hosts.
type site struct {
	*job
	node  int
	steps [8]step

	// Set once, by the first rank that comes by.
	leader bool  // this process has the host's lowest rank
	mine   int   // the lowest rank of this process on the host
	procs  []int // by rank of this host, the lowest rank of its process
	host   *host

	// Guarded by job.mu.
	scanned uint64 // of the host's log
	pulses  []pulse
	pulse   *pulse // this process's
	others  []watched
	control []*controlConn
	unix    []*net.UnixConn
	listen  *net.UnixListener
}

// site returns this process's part in host node.
func (j *job) site(node int) *site {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sites[node]
	if s == nil {
		s = &site{job: j, node: node}
		j.sites[node] = s
		j.all = append(j.all[:len(j.all):len(j.all)], s) // a new list: others hold the old one
	}
	return s
}

// parts lists the sites of this process.
func (j *job) parts() []*site {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.all
}

type step struct {
	sync.Once
	err error
}

// do runs f once for all ranks of this process.
func (s *step) do(f func() error) error {
	s.Do(func() { s.err = f() })
	return s.err
}

// jobs are the jobs this process takes part in: what a process has one of.
var jobs = struct {
	sync.Mutex
	m map[string]*job
}{m: map[string]*job{}}

// enterJob returns the job of that id, with one more rank in it.
func enterJob(id string) *job {
	jobs.Lock()
	defer jobs.Unlock()
	j := jobs.m[id]
	if j == nil {
		j = &job{id: id, born: time.Now(), comms: map[uint64][]*Comm{}, sites: map[int]*site{}, stopCh: make(chan struct{})}
		jobs.m[id] = j
	}
	j.refs++
	j.here.Add(1)
	return j
}

// hold adds a Comm to what keeps the job alive.
func (j *job) hold() {
	jobs.Lock()
	j.refs++
	jobs.Unlock()
}

// tryHold is hold, unless the job has ended in this process.
func (j *job) tryHold() bool {
	jobs.Lock()
	defer jobs.Unlock()
	if j.refs == 0 {
		return false
	}
	j.refs++
	return true
}

// leave takes one away; the last ends the job in this process.
func (j *job) leave() {
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

func (j *job) close() {
	j.mu.Lock()
	j.leaving = true
	j.mu.Unlock()
	close(j.stopCh)
	for _, s := range j.parts() {
		s.hideLife()
		for _, c := range s.unix {
			c.Write([]byte{'b'}) // good bye: this end is no accident
			c.Close()
		}
		if s.listen != nil {
			s.listen.Close()
		}
		neighbors := s.neighbors()
		for _, c := range neighbors {
			c.bye(neighbors)
		}
	}
	j.wg.Wait()
	if j.tcp != nil {
		j.tcp.Close()
	}
	for _, s := range j.parts() {
		if s.host != nil {
			s.host.close()
		}
	}
}

func (j *job) ranksHere() int { return int(j.here.Load()) }

// spins is how often a rank of this host looks at a flag
// before it gives way: not at all where ranks outnumber processors, since then the
// one waited for may need this one.
func (s *site) spins() int {
	if s.topo.Locals(s.node) > runtime.NumCPU() || s.ranksHere() > runtime.GOMAXPROCS(0) {
		return 16
	}
	return 1024
}

// add makes c known to the monitor. A failure that came before it did counts.
func (j *job) add(c *Comm) {
	j.mu.Lock()
	j.comms[c.id] = append(j.comms[c.id], c)
	old := append([]event(nil), j.history...)
	j.mu.Unlock()
	for _, e := range old {
		j.tell(c, &e)
	}
}

func (j *job) remove(c *Comm) {
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
	}
	if j.tcp != nil && c.cause.Load() == nil {
		j.tcp.Forget(c.id, uint32(c.rank))
	}
}

// post sends an event of this process on its way.
func (s *site) post(e event) {
	if s.host.shared() {
		s.host.head.log.append(e)
		s.scan()
		return
	}
	s.deliver(e)
	s.forward(&e, nil)
}

// scan reads what other processes have added to the host's log.
func (s *site) scan() {
	s.mu.Lock()
	h := s.host
	s.mu.Unlock()
	if h == nil || !h.shared() {
		return
	}
	log := &h.head.log
	for tries := 0; tries < 1000; {
		s.mu.Lock()
		i := s.scanned
		if n := log.n.Load(); i == n {
			s.mu.Unlock()
			return
		} else if n-i > logSlots {
			i = n - logSlots
			s.scanned = i
		}
		e, ok, gone := log.read(i)
		if ok || gone {
			s.scanned = i + 1
		} else {
			tries++ // it is being written
		}
		s.mu.Unlock()
		if ok {
			s.deliver(e)
			if s.leader && int(e.Node) == s.node {
				s.forward(&e, nil)
			}
		}
	}
}

// deliver fails the Comms of this process that e concerns.
func (j *job) deliver(e event) {
	j.mu.Lock()
	if len(j.history) == logSlots {
		j.history = j.history[1:]
	}
	j.history = append(j.history, e)
	var told []*Comm
	if e.Comm != 0 {
		told = append(told, j.comms[e.Comm]...)
	} else {
		for _, list := range j.comms {
			told = append(told, list...)
		}
	}
	j.mu.Unlock()
	for _, c := range told {
		j.tell(c, &e)
	}
}

// tell fails c with e, if it is c's concern.
func (j *job) tell(c *Comm, e *event) {
	if e.Comm == c.id {
		f := e.fault(c.rank)
		if f.Code == Mismatch && f.Theirs == nil && c.contradicts(&e.Call) {
			// Who differs from this rank is the one that reports, not whom it blames.
			theirs := e.Call
			f.Peer, f.Theirs = int(e.From), &theirs
		}
		c.failHere(f)
		return
	}
	if e.Comm != 0 {
		return
	}
	r := c.members.rank(int(e.Peer), c.Size())
	if r < 0 || r == c.rank {
		return
	}
	if c.hasLeft(r) {
		return // in good order
	}
	c.failHere(&Fault{Code: Code(e.Code), Peer: r, Err: e.cause()})
}

// contradicts reports whether this rank has made another call of r's number.
func (c *Comm) contradicts(r *Record) bool {
	c.life.Lock()
	defer c.life.Unlock()
	if c.gone {
		return false
	}
	mine := c.local.entered(c.me).Load()
	return mine>>32 == r.Seq&math.MaxUint32 && uint32(mine) != r.Hash
}

// hasLeft reports whether rank r is on this host and has closed the Comm.
func (c *Comm) hasLeft(r int) bool {
	if c.topo.Node(r) != c.topo.Node(c.rank) {
		return false
	}
	c.life.Lock()
	defer c.life.Unlock()
	return c.gone || c.local.state(c.topo.Local(r)).Load() == stateClosed
}

// lost reports that rank w of the world is gone.
func (s *site) lost(w int, cause error) {
	s.post(newEvent(0, RankLost, w, -1, s.node, cause))
}

// monitor is the one goroutine that keeps the coarse clock and reads the log.
func (j *job) monitor() {
	defer j.wg.Done()
	t := time.NewTicker(tick)
	defer t.Stop()
	for n := 0; ; n++ {
		select {
		case <-j.stopCh:
			return
		case <-t.C:
		}
		j.now.Store(int64(time.Since(j.born)))
		for _, s := range j.parts() {
			s.feel(n%beatTicks == 0)
			s.scan()
			if n%beatTicks == 0 {
				s.beat()
			}
		}
	}
}

const (
	tick      = 5 * time.Millisecond
	beatTicks = 50 // 250 ms
)
