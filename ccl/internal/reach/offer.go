package reach

import (
	"context"
	"math/rand/v2"
	"os"
	"time"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/reduce"
)

// Staging copies every byte twice. Where the ranks of a host can reach each other's memory, data
// need not be staged: ranks of one process, and memory from MakeSlice, which all can map, are
// read and written in place; the memory of other processes is read with process_vm_readv, where the kernel
// lets us. So a call begins with an offer: each rank says where its memory lies.

var askedToRead = environ.SHMRead.Get()

// WouldRead reports in which calls this rank is for reading other processes' memory, where that beats staging: all, among ranks
// with a core each, or those that move data from each rank to one other.
func (c *Reach) WouldRead() (all, moves bool) {
	all = askedToRead == "1" || askedToRead != "0" && tuning.CPU.ReadOthers && c.N <= c.Site.Host.Processors()
	return all, all || askedToRead != "0" && tuning.CPU.ReadMovedFrom > 0
}

// WouldReadMessage reports whether it is for reading a message of n bytes.
func (c *Reach) WouldReadMessage(n int) bool {
	all, moves := c.WouldRead()
	return all || moves && n >= tuning.CPU.ReadMovedFrom
}

// Secret is this process's number, which no other has there. Numbers of processes are not enough: ranks in containers
// of one pod may have the same.
var (
	Secret = rand.Uint64()
	OwnPID = uint64(os.Getpid())
)

// Readable reports whether a process has that number there, so that it is the right one and its memory can be read.
func Readable(pid int32, at, number uint64) bool {
	var got [8]byte
	return shm.ReadMemory(pid, got[:], at) == nil && *(*uint64)(unsafe.Pointer(&got)) == number
}

// ToBeRead says that other processes are going to read b, which lies at p.
func (c *Reach) ToBeRead(p *shm.Span, b []byte) {
	if p.Size == 0 && c.Site.Host.Shared() {
		c.huge.Add(b)
	}
}

// Touch returns the address at which this process finds memory at p of rank r, nil if it can
// only be read.
func (c *Reach) Touch(r int, p *shm.Span) (unsafe.Pointer, *call.Fault) {
	switch {
	case p.Size != 0 && !c.All:
		return c.Mapped(r, p)
	case c.Pids[r] != 0 || p.At == 0:
		return nil, nil
	}
	return c.Here(p)
}

// Source is n bytes at offset off of rank r's memory at p: where they are, or a copy of them in buf.
func (c *Reach) Source(ctx context.Context, r int, p *shm.Span, off, n int, buf []byte) (unsafe.Pointer, *call.Fault) {
	at, f := c.Touch(r, p)
	if f != nil {
		return nil, f
	}
	if at != nil {
		return unsafe.Add(at, off), nil
	}
	if f := c.read(ctx, r, c.Pids[r], buf[:n], p.At+uint64(off)); f != nil {
		return nil, f
	}
	return unsafe.Pointer(&buf[0]), nil
}

// Fill copies len(dst) bytes at offset off of rank r's memory at p. Where nothing is, nothing is touched: an empty block may begin
// where the memory ends, and a pointer to there, into memory that is another's or nobody's, must not be made.
func (c *Reach) Fill(ctx context.Context, r int, p *shm.Span, off int, dst []byte) *call.Fault {
	if len(dst) == 0 {
		return nil
	}
	at, f := c.Touch(r, p)
	if f != nil {
		return f
	}
	if at != nil {
		at = unsafe.Add(at, off)
	}
	f = c.FillFrom(ctx, r, at, c.Pids[r], p.At+uint64(off), dst)
	c.Touched()
	return f
}

// FillFrom copies len(dst) bytes of rank r's memory from here or, where here is nil, from that address of the process
// pid, stopping now and then for the scheduler.
func (c *Reach) FillFrom(ctx context.Context, r int, here unsafe.Pointer, pid int32, at uint64, dst []byte) *call.Fault {
	for i := 0; i < len(dst); i += tuning.PreemptPiece {
		piece := dst[i:min(i+tuning.PreemptPiece, len(dst))]
		if here != nil {
			copyPiece(piece, unsafe.Add(here, i))
		} else if f := c.read(ctx, r, pid, piece, at+uint64(i)); f != nil {
			return f
		}
		if f := c.InterruptedNow(); f != nil {
			return f
		}
	}
	return nil
}

// Write copies src to offset off of rank r's memory at p, which can be touched and takes so many bytes of results in all.
func (c *Reach) Write(r int, p *shm.Span, off int, src []byte, results int) *call.Fault {
	at, f := c.Touch(r, p)
	if f == nil {
		f = c.MayTouch()
	}
	move := ordered.Copy
	if len(src) > tuning.PreemptPiece && streamsOwn(len(src), results) {
		move = reduce.Stream
	}
	for i := 0; f == nil && i < len(src); i += tuning.PreemptPiece {
		inject.At("cpu.write")
		writePiece(unsafe.Add(at, off+i), src[i:min(i+tuning.PreemptPiece, len(src))], move)
		f = c.InterruptedNow()
	}
	c.Touched()
	return f
}

//go:noinline
func writePiece(to unsafe.Pointer, piece []byte, move func(dst, src unsafe.Pointer, n int)) {
	move(to, call.Ptr(piece), len(piece))
}

//go:noinline
func copyPiece(dst []byte, from unsafe.Pointer) { Get(dst, from) }

// InterruptedNow is why the call must end, nil if it need not: two loads. Once a rank has said that the Comm has
// failed, this one may not write any more, whether it knows the reason or waits for it.
func (c *Reach) InterruptedNow() *call.Fault {
	if f := c.Cause.Load(); f != nil {
		return f
	}
	if c.Local.Abort().Load() == 0 {
		return nil
	}
	c.Touched()
	if f := c.Aborted(); f != nil {
		return f
	}
	return c.Settle(c.Unexplained(2 * plane.SettleFor))
}

// read copies memory of the process pid, which is rank r.
func (c *Reach) read(ctx context.Context, r int, pid int32, dst []byte, at uint64) *call.Fault {
	if err := shm.ReadMemory(pid, dst, at); err != nil {
		return c.Unread(ctx, r, err)
	}
	return nil
}

// Unread is why the memory of rank r could not be read. Most likely its process has just died, or left a call that has
// failed: the reason is on its way.
func (c *Reach) Unread(ctx context.Context, r int, err error) *call.Fault {
	w := plane.Waiter{Remote: true} // rank r may live and wait for this one: nobody would ring
	for began := time.Now(); time.Since(began) < readGrace; {
		if f := c.Pause(ctx, &w, c.LocalRank(r)); f != nil {
			return f
		}
	}
	return c.Stop(call.NewFault(call.Backend, c.LocalRank(r), "the memory of rank %d cannot be read: %w", c.LocalRank(r), err))
}

const readGrace = 200 * time.Millisecond
