package cpu

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/fence"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/algo"
)

// Options are those of ccl.Options that the engine looks at.
type Options struct {
	Timeout     time.Duration // 0: none
	PeerTimeout time.Duration // 0: none
	Strict      bool
	Unchecked   bool
	RankOrder   bool
	Table       algo.Table   // of choices
	OnFail      func(*Fault) // called once, when the Comm fails
	OnSleep     func(*Call)  // called by a call that has waited for long, on its goroutine, once

	// What reports need and where they go. All of them may be nil. Busy and Caller are called by the monitor.
	Host      string         // this host's name
	StallWarn time.Duration  // after which a call that waits is reported; 0: never
	Busy      func() bool    // a call is under way
	Caller    func() string  // where the last call that slept was made
	OnLate    func(Late)     // a call has waited for StallWarn
	OnCircle  func([]Wait)   // ranks wait for each other
	OnPicture func([]Status) // where all ranks stood when a Comm failed
}

// Comm is one rank's end of a communicator. Run is for one goroutine at a time;
// Fail and Failure are for any.
type Comm struct {
	id      uint64
	rank    int
	size    int // of topo
	site    *site
	members members       // rank -> rank of the world
	topo    algo.Topology // of this Comm
	opt     Options

	// The ranks of this host.
	local    *region
	me, n    int         // this rank's place among them, and how many there are
	round    uint32      // the last round opened
	seen     uint32      // a round that all of them are known to have posted
	lines    [][]byte    // their staging memory, as far as mapped
	chunk    int         // bytes of a staging slot
	views    []shm.Place // what to drop at the end
	host     *shm.Host   // whose memory that is; the site may have another by then, if this Comm is abandoned
	spins    int         // looks before giving way
	apart    string      // see Apart
	splits   uint64
	shrinks  uint32
	disturb  func(*Comm, *Call) *Fault // see Disturbed
	talks    map[int]*line             // inside this host, of agreements
	calls    uint64                    // collectives made
	start    uint32                    // where the counters have begun: see beginAt
	order    uint32                    // their hash
	began    int64                     // the call under way
	bell     bell                      // of that
	running  *Call                     // and itself; nil once it has slept
	lockstep bool                      // which is one of rounds among all ranks
	touching bool                      // this rank has said that it touches the memory of others
	untidy   bool                      // which has left something to tidy
	foreign  atomic.Uint64             // foreignCall | when the foreign call under way began; 0 if there is none
	stands   atomic.Uint64             // the same of a device that does not move

	reach reach // how they get at each other's memory

	// Everybody else.
	links map[linkKey]*link
	exec  executor

	ctx      context.Context // ends when the Comm fails or closes
	cancel   context.CancelFunc
	cause    atomic.Pointer[Fault]
	proposal atomic.Pointer[Fault] // what this rank first believed to be the cause: not nil where cause is not
	failedAt atomic.Int64          // Unix nanoseconds
	closed   atomic.Bool
	closing  atomic.Bool // see Interrupt

	name      atomic.Pointer[string]
	note      note
	wordSince time.Duration         // that the abort word was seen set, in lived time; the monitor's
	asked     atomic.Bool           // another rank was heard to wait
	sided     atomic.Pointer[Fault] // see side
	voted     []uint64              // collectives that this host has told about, under job.mu: see vote.go

	life sync.Mutex // keeps Close from unmapping what another goroutine looks at
	gone bool
}

// members maps the ranks of a Comm to ranks of the world: start + i*stride, which
// is most of what mesh-shaped jobs split into, or a list.
type members struct {
	start, stride int
	list          []int32
}

func membersOf(world []int) members {
	if len(world) == 0 {
		return members{}
	}
	m := members{start: world[0], stride: 1}
	if len(world) > 1 {
		m.stride = world[1] - world[0]
	}
	for i, w := range world {
		if w != m.start+i*m.stride {
			m.list = make([]int32, len(world))
			for i, w := range world {
				m.list[i] = int32(w)
			}
			break
		}
	}
	return m
}

func (m *members) world(rank int) int {
	if m.list != nil {
		return int(m.list[rank])
	}
	return m.start + rank*m.stride
}

// rank is the inverse of world; -1 if w is no member. size is that of the Comm.
func (m *members) rank(w, size int) int {
	if m.list != nil {
		for i, x := range m.list {
			if int(x) == w {
				return i
			}
		}
		return -1
	}
	if m.stride == 0 {
		if w == m.start {
			return 0
		}
		return -1
	}
	d := w - m.start
	if d%m.stride != 0 || d/m.stride < 0 || d/m.stride >= size {
		return -1
	}
	return d / m.stride
}

// Rank is this rank.
func (c *Comm) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *Comm) Size() int { return c.size }

// Topology says which ranks share a host.
func (c *Comm) Topology() algo.Topology { return c.topo }

// Failure is why the Comm failed, nil while it has not.
func (c *Comm) Failure() *Fault {
	if f := c.sided.Load(); f != nil {
		return f
	}
	return c.cause.Load()
}

// Now is the coarse time since the job began, in nanoseconds.
func (c *Comm) Now() int64 { return c.site.clock() }

// Fail fails the Comm on all its ranks, with f or with what came before it: see settle.go. It does
// not wait for a decision.
func (c *Comm) Fail(f *Fault) {
	if c.cause.Load() != nil || !c.site.tryHold() { // failed, or the job is over
		return
	}
	defer c.site.leave()
	if c.closed.Load() || !c.proposal.CompareAndSwap(nil, f) {
		return
	}
	e := eventOf(c, f)
	if c.isDisputed(&e) {
		c.dispute(e)
		return
	}
	c.site.post(e)
	// The caller of Abort need not wait for the others to agree. But they are told first: the call that this ends may be
	// the last thing that the process has waited for.
	if f.Code == Aborted {
		c.failHere(f)
	}
}

// Ended fails the Comm because of a call that could not begin, and waits for the cause. On a Comm whose job is over in
// this process it does nothing.
func (c *Comm) Ended(f *Fault) *Fault {
	if !c.site.tryHold() { // or the memory of the host, which settle looks at, could go meanwhile
		return f
	}
	defer c.site.leave()
	return c.stop(f)
}

// Interrupt makes a Shrink under way come to nothing, with a fault of code Closed, unless this rank is bound to wait for
// its outcome. Calls are interrupted by Fail.
func (c *Comm) Interrupt() { c.closing.Store(true) }

// ContextFault is the fault of a call whose context has ended.
func ContextFault(err error) *Fault { return ctxFault(err, nil) }

// failHere fails the Comm on this rank, and wakes the ranks of this host.
func (c *Comm) failHere(f *Fault) bool {
	if c.cause.Load() == nil {
		c.note.Lock()
		if s, _, ok := c.status(c.site.clock()); ok && c.note.atEnd == nil {
			s.Failed = true
			c.note.atEnd = &s
		}
		c.note.Unlock()
	}
	c.life.Lock()
	if c.gone {
		c.life.Unlock()
		return false
	}
	// Before the cause: who sees that leaves its call, and a rank that begins to write after that must see the word
	// (see mayTouch).
	c.local.abort().CompareAndSwap(0, 1+uint64(c.me))
	sleeping := c.sleeping()
	if !c.cause.CompareAndSwap(nil, f) {
		c.life.Unlock()
		c.ringAll(sleeping)
		return false
	}
	c.proposal.CompareAndSwap(nil, f)
	c.failedAt.Store(time.Now().UnixNano())
	c.life.Unlock()
	c.ringAll(sleeping)
	c.rouseCall()
	if c.opt.OnFail != nil {
		c.opt.OnFail(f)
	}
	c.cancel()
	return true
}

// newComm makes a Comm that begins at once: see makeComm.
func newComm(at *site, id uint64, world members, topo algo.Topology, rank int, off uint64, opt Options) (*Comm, error) {
	c, err := makeComm(at, id, world, topo, rank, off, opt)
	if err == nil {
		c.enlist()
	}
	return c, err
}

// makeComm is the common end of Join, Split and Shrink, and all of them that can fail: world is the ranks of the world in
// the order of the new Comm, off the region of this host's members. The Comm begins once all its ranks have one, or is
// abandoned.
func makeComm(at *site, id uint64, world members, topo algo.Topology, rank int, off uint64, opt Options) (*Comm, error) {
	node := topo.Node(rank)
	n := topo.Locals(node)
	mem, err := at.host.View(off, regionBytes(n))
	if err != nil {
		return nil, err
	}
	c := &Comm{id: id, rank: rank, size: topo.Size(), site: at, host: at.host, members: world, topo: topo, opt: opt,
		local: newRegion(off, mem, n), me: topo.Local(rank), n: n, bell: bell{rung: make(chan struct{}, 1)},
		views: []shm.Place{shm.PlaceAt(off, regionBytes(n))}, chunk: tuning.StageChunk(n), links: map[linkKey]*link{}}
	if n == 2 {
		c.local.whole = int(boardOf(at.host).whole.Load())
	}
	c.beginAt(firstNumber())
	c.ctx, c.cancel = context.WithCancel(context.Background())
	fence.Prepare()
	if at.tcp != nil {
		at.tcp.Expect(id, uint32(rank))
	}
	return c, nil
}

// enlist makes c known to the monitor: from now on it can fail.
func (c *Comm) enlist() {
	c.spins = c.site.spins() // all processes of this host have said by now where they may run
	c.site.add(c)
}

// abandon drops a Comm that has not begun.
func (c *Comm) abandon() {
	c.cancel()
	if c.id != worldID && c.site.tcp != nil { // the world may be made again, in another try at sharing memory
		c.site.tcp.Forget(c.id, uint32(c.rank))
	}
	for _, off := range c.views {
		c.host.Drop(off)
	}
}

// Apart is why ranks that seemed to be on this rank's host share no memory with it, where this rank is to tell.
func (c *Comm) Apart() string { return c.apart }

// Close leaves the Comm. The last rank of the host to leave frees its memory.
func (c *Comm) Close() {
	if !c.closed.CompareAndSwap(false, true) {
		return
	}
	inject.At("cpu.close")
	c.linger()
	c.sayBye()
	c.cancel()
	c.site.remove(c)
	if c.cause.Load() == nil { // else the others are to learn why, not that this one left
		c.local.state(c.me).Store(stateClosed)
	} else {
		c.local.state(c.me).Store(stateLeft)
	}
	c.ringAll(c.sleeping())
	c.leaveAgreement(c.shrinks, (*tcp.Node).Forget)
	c.leaveAgreement(c.shrinks+1, (*tcp.Node).Forget)
	// From here on nobody in this process writes into the region: the last rank of the host that leaves frees it, and
	// its memory may be another's at once.
	c.life.Lock()
	c.gone = true
	c.life.Unlock()
	last := int(c.local.left().Add(1)) == c.n
	var made []shm.Place
	if last {
		made = c.memory()
	}
	for _, l := range c.links {
		l.close()
	}
	for _, at := range c.views {
		c.site.host.Drop(at)
	}
	for at := range c.reach.maps {
		c.site.host.Drop(at)
	}
	for _, at := range made {
		c.site.host.Free(at.Off, int(at.Size))
	}
	c.site.leave()
}

// A Comm that has just failed stays for a while: its process may be one through which the report
// of the failure travels, and tells where its ranks stood.
const (
	lingerFor  = 100 * time.Millisecond // where it spans hosts
	lingerHere = pictureAfter + 4*tick
)

func (c *Comm) linger() {
	at, f := c.failedAt.Load(), c.cause.Load()
	switch {
	case f == nil || c.Size() == 1:
	case c.topo.Nodes() > 1:
		time.Sleep(lingerFor - time.Since(time.Unix(0, at)))
	case alarming(f.Code):
		time.Sleep(lingerHere - time.Since(time.Unix(0, at)))
	}
}

// alarming reports whether a failure is one that nobody has asked for.
func alarming(code Code) bool { return code != Closed && code != Canceled && code != Aborted }

// memory lists what the ranks of this host have made for the Comm: its region, staging memory, and pipes with the
// tables that name them.
func (c *Comm) memory() []shm.Place {
	made := []shm.Place{shm.PlaceAt(c.local.off, regionBytes(c.n))}
	for r := range c.n {
		if off := c.local.stage(r).Load(); off != 0 {
			made = append(made, shm.PlaceAt(off, c.stageBytes()))
		}
		if off := c.local.row(r).Load(); off != 0 {
			made = append(made, c.pipesOf(off)...)
		}
		made = append(made, c.orphaned(r)...)
	}
	return made
}

// orphaned lists what is left of a Comm that rank r of this host has made memory for, when all ranks of the host have closed
// this one, and Split failed on some of them. Those that have the new Comm count themselves out as they close it; here the
// others are counted out.
func (c *Comm) orphaned(r int) []shm.Place {
	off, n, joined := c.local.split(r).Load(), int(c.local.splitSize(r).Load()), int(c.local.joined(r).Load())
	switch {
	case off == 0 || joined >= n:
		return nil
	case joined == 0:
		return []shm.Place{shm.PlaceAt(off, regionBytes(n))}
	}
	at := shm.PlaceAt(off, regionBytes(n))
	mem, err := c.host.View(off, regionBytes(n))
	if err != nil { // it stays until the job ends
		return nil
	}
	defer c.host.Drop(at)
	child := Comm{site: c.site, host: c.host, n: n, local: newRegion(off, mem, n)}
	if int(child.local.left().Add(uint64(n-joined))) < n {
		return nil
	}
	return child.memory()
}

// Where says how two ranks of the Comm talk.
func (c *Comm) Where(peer int) string {
	switch {
	case c.topo.Node(peer) != c.topo.Node(c.rank):
		return "TCP"
	case c.site.host.Shared():
		return "shared memory"
	}
	return "memory"
}

// localRank is the rank in the Comm of member r of this host.
func (c *Comm) localRank(r int) int { return c.topo.Rank(c.topo.Node(c.rank), r) }
