package cpu

import (
	"context"
	"math/rand/v2"
	"os"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Staging copies every byte twice. Where the ranks of a host can reach each other's memory, data
// need not be staged: ranks of one process, and memory from MakeSlice, which all can map, are
// read and written in place; the memory of other processes is read with process_vm_readv, where the kernel
// lets us. So a call begins with an offer: each rank says where its memory lies.

// offer is what a rank posts at the beginning of a call.
type offer struct {
	src, dst shm.Span
	flags    uint64 // offersInPlace and offersStaged
}

const (
	offersInPlace = 1 << iota // src and dst are the same memory
	offersStaged              // the first piece of src has been staged in the same round
)

var _ [64 - 8 - unsafe.Sizeof(offer{})]byte // it lies in the cache line of the flag

// Reach is how a rank gets at the memory of the other ranks of its host.
type Reach struct {
	Member
	asked    bool
	pids     []int32 // by rank of the host; 0: this process
	reads    bool    // every rank may read every other's memory
	all      bool    // they are all in this process
	scratch  []byte
	maps     map[shm.Place]view // regions of other ranks' MakeSlice memory
	mappings uint64             // how many there have been
	returned uint64             // how many regions of the host had been given back when maps was last swept
	stale    bool               // it is to be swept
	huge     shm.HugePages      // of this rank's memory that others read
	touching bool               // this rank has said that it touches the memory of others
	untidy   bool               // the call under way has left something to tidy
}

var askedToRead = os.Getenv("GOCCL_SHM_READ")

// wouldRead reports whether this rank is for reading other processes' memory: where that beats staging, among ranks with a
// core each.
func (c *Reach) wouldRead() bool {
	return askedToRead == "1" || askedToRead != "0" && tuning.CPU.ReadOthers && c.n <= c.site.host.Processors()
}

// acquaint finds out, once per Comm, who can read whose memory: each rank tries to read a number
// from each of the others, and all must have succeeded, since what differs between ranks must
// not steer the message pattern.
func (c *Team) acquaint(ctx context.Context, k *Call) *Fault {
	if c.asked {
		return nil
	}
	type card struct{ pid, at, number uint64 }
	rc := &c.Reach
	c.offers = make([]offer, c.n)
	rc.scratch = make([]byte, 2*tuning.ReadPiece)
	rc.pids = make([]int32, c.n)
	if rc.all = !c.site.host.Shared(); rc.all {
		rc.asked = true
		return nil
	}
	round, f := c.open(ctx, k, false)
	if f != nil {
		return f
	}
	*(*card)(c.local.data(c.me, round)) = card{ownPID, uint64(uintptr(unsafe.Pointer(&secret))), secret}
	c.post(k, round)
	if f := c.awaitAll(ctx, k, round); f != nil {
		return f
	}
	ok := uint64(1)
	if !c.wouldRead() {
		ok = 0
	}
	for r := range c.n {
		if r == c.me || ok == 0 {
			continue
		}
		his := *(*card)(c.local.data(r, round))
		if his.number == secret {
			continue
		}
		rc.pids[r] = int32(his.pid)
		if !readable(rc.pids[r], his.at, his.number) {
			ok = 0
		}
	}
	if round, f = c.open(ctx, k, false); f != nil {
		return f
	}
	*(*uint64)(c.local.data(c.me, round)) = ok
	c.post(k, round)
	if f := c.awaitAll(ctx, k, round); f != nil {
		return f
	}
	rc.reads = true
	for r := range c.n {
		rc.reads = rc.reads && *(*uint64)(c.local.data(r, round)) == 1
	}
	rc.asked = true
	return nil
}

// secret is this process's number, which no other has there. Numbers of processes are not enough: ranks in containers
// of one pod may have the same.
var (
	secret = rand.Uint64()
	ownPID = uint64(os.Getpid())
)

// readable reports whether a process has that number there, so that it is the right one and its memory can be read.
func readable(pid int32, at, number uint64) bool {
	var got [8]byte
	return shm.ReadMemory(pid, got[:], at) == nil && *(*uint64)(unsafe.Pointer(&got)) == number
}

// How a call gets at the data of the other ranks.
type way uint8

const (
	byStage  way = iota // through staging memory
	byRead              // their memory is read, whatever it takes
	byDirect            // all of it, sources and results, can be touched in place
)

// toBeRead says that other processes are going to read b, which lies at p.
func (c *Reach) toBeRead(p *shm.Span, b []byte) {
	if p.Size == 0 && c.site.host.Shared() {
		c.huge.Add(b)
	}
}

// postOffer posts this rank's offer, and returns the round.
func (c *Team) postOffer(ctx context.Context, k *Call, src, dst []byte) (uint32, *Fault) {
	round, f := c.open(ctx, k, false)
	if f == nil {
		mine := c.newOffer(src, dst)
		c.toBeRead(&mine.src, src)
		*(*offer)(c.local.data(c.me, round)) = mine
		c.post(k, round)
	}
	return round, f
}

func (c *Team) newOffer(src, dst []byte) offer {
	mine := offer{src: c.site.host.SpanOf(src), dst: c.site.host.SpanOf(dst)}
	if len(src) > 0 && ptr(src) == ptr(dst) {
		mine.flags = offersInPlace
	}
	return mine
}

// offerOf waits for rank r's offer.
func (c *Team) offerOf(ctx context.Context, k *Call, r int, round uint32) (*offer, *Fault) {
	if f := c.await(ctx, k, r, round); f != nil {
		return nil, f
	}
	return (*offer)(c.local.data(r, round)), nil
}

// exchange posts this rank's offer, waits for those of all others, and says what they allow: the same on all.
// A rank whose memory others cannot reach, or will not read, stages the first `first` bytes of src with its offer;
// ahead says that all have, in the round that has just been.
func (c *Team) exchange(ctx context.Context, k *Call, src, dst []byte, first int) (w way, ahead bool, f *Fault) {
	rc := &c.Reach
	round, f := c.open(ctx, k, first > 0)
	if f != nil {
		return 0, false, f
	}
	mine := c.newOffer(src, dst)
	inPlace := mine.flags&offersInPlace != 0
	read := rc.reads && (first == 0 || c.readsAll(len(src), inPlace))
	switch {
	case rc.all || mine.src.Shared() && mine.dst.Shared():
	case read:
		if first > 0 || !inPlace { // AllToAll in place is staged
			c.toBeRead(&mine.src, src)
		}
		if first > 0 && !inPlace && (c.n > 2 || len(src) > tuning.ReadAllTo) {
			from, end := c.part(len(dst), c.me)
			c.toBeRead(&mine.dst, dst[from:end])
		}
	case first > 0:
		to, f := c.stage(c.me, round)
		if f != nil {
			return 0, false, f
		}
		put(to, src[:first])
		mine.flags |= offersStaged
	}
	*(*offer)(c.local.data(c.me, round)) = mine
	c.post(k, round)
	if f := c.awaitAll(ctx, k, round); f != nil {
		return 0, false, f
	}
	shared, ahead := true, true
	for r := range c.n {
		o := &c.offers[r]
		*o = *(*offer)(c.local.data(r, round))
		shared = shared && o.src.Shared() && o.dst.Shared()
		ahead = ahead && o.flags&offersStaged != 0
	}
	switch {
	case shared || rc.all:
		return byDirect, false, nil
	case rc.reads:
		return byRead, ahead, nil
	}
	return byStage, ahead, nil
}

// someInPlace reports whether some rank's results are where its operands are.
func (c *Team) someInPlace() bool {
	for i := range c.offers {
		if c.offers[i].flags&offersInPlace != 0 {
			return true
		}
	}
	return false
}

// touch returns the address at which this process finds memory at p of rank r, nil if it can
// only be read.
func (c *Reach) touch(r int, p *shm.Span) (unsafe.Pointer, *Fault) {
	switch {
	case p.Size != 0 && !c.all:
		return c.mapped(r, p)
	case c.pids[r] != 0 || p.At == 0:
		return nil, nil
	}
	return c.here(p)
}

// source is n bytes at offset off of rank r's memory at p: where they are, or a copy of them in buf.
func (c *Reach) source(ctx context.Context, r int, p *shm.Span, off, n int, buf []byte) (unsafe.Pointer, *Fault) {
	at, f := c.touch(r, p)
	if f != nil {
		return nil, f
	}
	if at != nil {
		return unsafe.Add(at, off), nil
	}
	if f := c.read(ctx, r, c.pids[r], buf[:n], p.At+uint64(off)); f != nil {
		return nil, f
	}
	return unsafe.Pointer(&buf[0]), nil
}

// fill copies len(dst) bytes at offset off of rank r's memory at p.
func (c *Reach) fill(ctx context.Context, r int, p *shm.Span, off int, dst []byte) *Fault {
	at, f := c.touch(r, p)
	if f != nil {
		return f
	}
	if at != nil {
		at = unsafe.Add(at, off)
	}
	f = c.fillFrom(ctx, r, at, c.pids[r], p.At+uint64(off), dst)
	c.touched()
	return f
}

// fillFrom copies len(dst) bytes of rank r's memory from here or, where here is nil, from that address of the process
// pid, stopping now and then for the scheduler.
func (c *Reach) fillFrom(ctx context.Context, r int, here unsafe.Pointer, pid int32, at uint64, dst []byte) *Fault {
	for i := 0; i < len(dst); i += tuning.PreemptPiece {
		piece := dst[i:min(i+tuning.PreemptPiece, len(dst))]
		if here != nil {
			copyPiece(piece, unsafe.Add(here, i))
		} else if f := c.read(ctx, r, pid, piece, at+uint64(i)); f != nil {
			return f
		}
		if f := c.interruptedNow(); f != nil {
			return f
		}
	}
	return nil
}

//go:noinline
func copyPiece(dst []byte, from unsafe.Pointer) { get(dst, from) }

// interruptedNow is why the call must end, nil if it need not: two loads. Once a rank has said that the Comm has
// failed, this one may not write any more, whether it knows the reason or waits for it.
func (c *Reach) interruptedNow() *Fault {
	if f := c.cause.Load(); f != nil {
		return f
	}
	if c.local.abort().Load() == 0 {
		return nil
	}
	c.touched()
	if f := c.aborted(); f != nil {
		return f
	}
	return c.settle(c.unexplained(2 * settleFor))
}

// read copies memory of the process pid, which is rank r.
func (c *Reach) read(ctx context.Context, r int, pid int32, dst []byte, at uint64) *Fault {
	if err := shm.ReadMemory(pid, dst, at); err != nil {
		return c.unread(ctx, r, err)
	}
	return nil
}

// unread is why the memory of rank r could not be read. Most likely its process has just died, or left a call that has
// failed: the reason is on its way.
func (c *Reach) unread(ctx context.Context, r int, err error) *Fault {
	var w waiter
	for began := time.Now(); time.Since(began) < readGrace; {
		if f := c.pause(ctx, &w, c.localRank(r)); f != nil {
			return f
		}
	}
	return c.stop(fault(Backend, c.localRank(r), "the memory of rank %d cannot be read: %w", c.localRank(r), err))
}

const readGrace = 200 * time.Millisecond
