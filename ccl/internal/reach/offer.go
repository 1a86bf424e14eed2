package reach

import (
	"syscall"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// Staging copies every byte twice. Where the ranks of a host can reach each other's memory, data
// need not be staged: ranks of one process, and memory from MakeSlice, which all can map, are
// read and written in place; the memory of other processes is read with process_vm_readv, where the kernel
// lets us. So a call begins with an offer: each rank says where its memory lies.

// Secret is this process's number, which no other has there. Numbers of processes are not enough: ranks in containers
// of one pod may have the same.
var (
	Secret = proc.Number()
	OwnPID = uint64(syscall.Getpid())
)

// ToBeRead says that other processes are going to read b, which lies at p.
func (c *Reach) ToBeRead(p *shm.Span, b []byte) {
	if p.Size == 0 && c.rank.Site.Here.Host.Shared() {
		c.huge.Add(b, shm.HugeRead)
	}
}

// ToBeFilled says that what other processes have is going to be read into b, which lies at p, large results.
func (c *Reach) ToBeFilled(p *shm.Span, b []byte) {
	if p.Size == 0 && len(b) >= tuning.HugeResultsFrom && c.rank.Site.Here.Host.Shared() {
		c.huge.Add(b, shm.HugeFilled)
	}
}

// touch returns the address at which this process finds memory at p of rank r, nil if it can
// only be read.
func (c *Reach) touch(r int, p *shm.Span) (unsafe.Pointer, *call.Fault) {
	switch {
	case p.Size != 0 && !c.Known.All:
		return c.mapped(r, p)
	case c.Pids[r] != 0 || p.At == 0:
		return nil, nil
	}
	return c.here(p)
}

// Write copies src to offset off of rank r's memory at p, which can be touched and takes so many
// bytes of results in all.
func (c *Reach) Write(r int, p *shm.Span, off int, src []byte, results int) *call.Fault {
	at, f := c.touch(r, p)
	if f == nil {
		f = c.MayTouch()
	}
	move := ordered.Copy
	if len(src) > tuning.PreemptPiece && c.streamsOwn(len(src), results) {
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
	move(to, op.Ptr(piece), len(piece))
}

// InterruptedNow is why the call must end, nil if it need not: two loads. Once a rank has said that the Comm has
// failed, this one may not write any more, whether it knows the reason or waits for it.
func (c *Reach) InterruptedNow() *call.Fault {
	if f := c.rank.Fate.Cause(); f != nil {
		return f
	}
	if c.local.Abort().Load() == 0 {
		return nil
	}
	c.Touched()
	if f := c.rank.Aborted(); f != nil {
		return f
	}
	return c.rank.Settle(c.rank.Share.Unexplained(2 * plane.SettleFor))
}
