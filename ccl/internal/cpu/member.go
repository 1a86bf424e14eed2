package cpu

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/algo"
)

// Member is one rank of one Comm as the control plane sees it: who it is, what it has in common with the ranks of its host,
// which calls it has made, how it waits, and how it fails.
type Member struct {
	identity
	here
	ledger
	failure
	elsewhere

	site  *site
	opt   Options
	bell  bell // of the call under way
	name  atomic.Pointer[string]
	note  note
	asked atomic.Bool // another rank was heard to wait

	life sync.Mutex // keeps Close from unmapping what another goroutine looks at
	gone bool       // under life: the Comm's memory may be another's
}

// identity says which rank of which Comm.
type identity struct {
	id      uint64
	rank    int
	size    int           // of topo
	members members       // rank -> rank of the world
	topo    algo.Topology // of this Comm
}

// here is what the ranks of this host share.
type here struct {
	local *region
	me, n int         // this rank's place among them, and how many there are
	host  *shm.Host   // whose memory that is; the site may have another by then, if this Comm is abandoned
	views []shm.Place // what to drop at the end
	spins int         // looks before giving way
}

// ledger is the order of this rank's calls, and the call under way. It is the goroutine's that makes the calls.
type ledger struct {
	start    uint32 // where the counters have begun: see beginAt
	calls    uint64 // collectives made
	order    uint32 // their hash
	round    uint32 // the last round opened
	began    int64  // the call under way
	running  *Call  // and itself; nil once it has slept
	lockstep bool   // which is one of rounds among all ranks
}

// failure is whether and why this rank's Comm has failed.
type failure struct {
	ctx       context.Context // ends when the Comm fails or closes
	cancel    context.CancelFunc
	cause     atomic.Pointer[Fault]
	proposal  atomic.Pointer[Fault] // what this rank first believed to be the cause: not nil where cause is not
	sided     atomic.Pointer[Fault] // see side
	failedAt  atomic.Int64          // Unix nanoseconds
	closed    atomic.Bool
	closing   atomic.Bool   // see Interrupt
	wordSince time.Duration // that the abort word was seen set, in lived time; the monitor's
	voted     []uint64      // collectives that this host has told about, under job.mu: see vote.go
}

// elsewhere is the call whose data another engine moves.
type elsewhere struct {
	foreign atomic.Uint64 // foreignCall | when the call under way began; 0 if there is none
	stands  atomic.Uint64 // the same of a device that does not move
}

// init makes c rank rank of a Comm, with what the ranks of its host share.
func (c *Member) init(at *site, id uint64, world members, topo algo.Topology, rank int, local *region, opt Options) {
	c.identity = identity{id: id, rank: rank, size: topo.Size(), members: world, topo: topo}
	c.here = here{local: local, me: topo.Local(rank), n: local.n, host: at.host, views: []shm.Place{shm.PlaceAt(local.off, regionBytes(local.n))}}
	c.site, c.opt, c.bell = at, opt, bell{rung: make(chan struct{}, 1)}
	if c.n == 2 {
		c.local.whole = int(boardOf(at.host).whole.Load())
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.beginAt(firstNumber())
}

// Rank is this rank.
func (c *identity) Rank() int { return c.rank }

// Size is the number of ranks.
func (c *identity) Size() int { return c.size }

// Topology says which ranks share a host.
func (c *identity) Topology() algo.Topology { return c.topo }

// Failure is why the Comm failed, nil while it has not.
func (c *Member) Failure() *Fault {
	if f := c.sided.Load(); f != nil {
		return f
	}
	return c.cause.Load()
}

// Now is the coarse time since the job began, in nanoseconds.
func (c *Member) Now() int64 { return c.site.clock() }

// Fail fails the Comm on all its ranks, with f or with what came before it: see settle.go. It does
// not wait for a decision.
func (c *Member) Fail(f *Fault) {
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
func (c *Member) Ended(f *Fault) *Fault {
	if !c.site.tryHold() { // or the memory of the host, which settle looks at, could go meanwhile
		return f
	}
	defer c.site.leave()
	return c.stop(f)
}

// Interrupt makes a Shrink under way come to nothing, with a fault of code Closed, unless this rank is bound to wait for
// its outcome. Calls are interrupted by Fail.
func (c *Member) Interrupt() { c.closing.Store(true) }

// ContextFault is the fault of a call whose context has ended.
func ContextFault(err error) *Fault { return ctxFault(err, nil) }

// failHere fails the Comm on this rank, and wakes the ranks of this host.
func (c *Member) failHere(f *Fault) bool {
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

// enlist makes c known to the monitor: from now on it can fail.
func (c *Member) enlist() {
	c.spins = c.site.spins() // all processes of this host have said by now where they may run
	c.site.add(c)
}

// A Comm that has just failed stays for a while: its process may be one through which the report
// of the failure travels, and tells where its ranks stood.
const (
	lingerFor  = 100 * time.Millisecond // where it spans hosts
	lingerHere = pictureAfter + 4*tick
)

func (c *Member) linger() {
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

// Where says how two ranks of the Comm talk.
func (c *Member) Where(peer int) string {
	switch {
	case c.topo.Node(peer) != c.topo.Node(c.rank):
		return "TCP"
	case c.site.host.Shared():
		return "shared memory"
	}
	return "memory"
}

// localRank is the rank in the Comm of member r of this host.
func (c *identity) localRank(r int) int { return c.topo.Rank(c.topo.Node(c.rank), r) }
