package reach

import (
	"context"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/op"
)

// A Source is where memory of a rank lies. What lies there only Read hands out: nobody else can make a pointer of it.
type Source struct {
	here unsafe.Pointer // where this process can touch it; nil: it can only be read,
	pid  int32          // in this process,
	addr uint64         // at this address
	rank int            // of the host, which is asked if the kernel refuses; -1: it is not
}

// Own is memory of this rank.
func Own(p unsafe.Pointer) Source { return Source{here: p} }

// At is what lies off bytes further on.
func (s Source) At(off int) Source {
	if s.here != nil {
		s.here = unsafe.Add(s.here, off)
	}
	s.addr += uint64(off)
	return s
}

// Find says where memory at p of rank r lies.
func (c *Reach) Find(r int, p *shm.Span) (Source, *call.Fault) {
	here, f := c.touch(r, p)
	return Source{here, c.Pids[r], p.At, r}, f
}

// Offered is Find of memory that rank r has offered in a message: in this process if it is ours,
// else in the process pid. If the kernel refuses to read that, Read returns Refused.
func (c *Reach) Offered(r int, p *shm.Span, ours bool, pid int32) (s Source, f *call.Fault) {
	s = Source{pid: pid, addr: p.At, rank: -1}
	switch {
	case p.Size != 0:
		s.here, f = c.mapped(r, p)
	case ours:
		s.here, f = c.here(p)
	}
	return s, f
}

// Refused says that the kernel does not let this process read memory that only its owner may read. The Comm goes on.
var Refused = call.NewFault(call.Backend, -1, "the memory cannot be read")

// Read is the one way to the memory of other ranks. It calls use with where n bytes of each source
// lie: there, or, if they can only be read, in buf, those of source i from i*stride on. What use
// has read counts only if Read returns nil: nobody had given the call up by then. A rank whose call
// has failed owns its memory again and may write there, so Read looks after use.
func (c *Reach) Read(ctx context.Context, from []Source, n int, buf []byte, stride int,
	use func(at []unsafe.Pointer)) *call.Fault {
	at := c.at[:0]
	for i := range from {
		s := &from[i]
		p := s.here
		if p == nil {
			b := buf[i*stride:][:n]
			if f := c.copyFrom(ctx, s, b); f != nil {
				return f
			}
			p = op.Ptr(b)
		}
		at = append(at, p)
	}
	use(at)
	clear(at) // which keep nothing alive, and point to nothing that may be gone
	c.at = at[:0]
	ordered.Loaded() // else the look might be older than what use has seen
	return c.InterruptedNow()
}

// copyFrom copies what lies at s, in another process, to dst.
func (c *Reach) copyFrom(ctx context.Context, s *Source, dst []byte) *call.Fault {
	inject.At("cpu.read")
	if inject.From("cpu.refuse") == 0 && shm.ReadMemory(s.pid, dst, s.addr) == nil {
		return nil
	}
	if s.rank < 0 {
		return Refused
	}
	return c.ask(ctx, s.rank, dst, s.addr)
}

// Readable reports whether a process has that number there, so that it is the right one and its memory can be read.
func Readable(pid int32, at, number uint64) bool {
	var got [8]byte
	return shm.ReadMemory(pid, got[:], at) == nil && *(*uint64)(unsafe.Pointer(&got)) == number
}

// Fill copies len(dst) bytes at offset off of rank r's memory at p. Where nothing is, nothing is
// touched: an empty block may begin where the memory ends, and a pointer to there, into memory that
// is another's or nobody's, must not be made.
func (c *Reach) Fill(ctx context.Context, r int, p *shm.Span, off int, dst []byte) *call.Fault {
	if len(dst) == 0 {
		return nil
	}
	s, f := c.Find(r, p)
	if f != nil {
		return f
	}
	f = c.FillFrom(ctx, s.At(off), dst)
	c.Touched()
	return f
}

// FillFrom copies len(dst) bytes of a source, stopping now and then for the scheduler.
func (c *Reach) FillFrom(ctx context.Context, s Source, dst []byte) *call.Fault {
	for i := 0; i < len(dst); i += tuning.PreemptPiece {
		piece := dst[i:min(i+tuning.PreemptPiece, len(dst))]
		from := [1]Source{s.At(i)}
		f := c.Read(ctx, from[:], len(piece), piece, 0, func(at []unsafe.Pointer) {
			if at[0] != op.Ptr(piece) { // else it has been read to there
				copyPiece(piece, at[0])
			}
		})
		if f != nil {
			return f
		}
	}
	return nil
}

//go:noinline
func copyPiece(dst []byte, from unsafe.Pointer) {
	if inject.Wrong("reach.copy") && len(dst) > 1 {
		dst = dst[1:]
	}
	ordered.Get(dst, from)
}
