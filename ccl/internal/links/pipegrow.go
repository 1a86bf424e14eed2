package links

import (
	"errors"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// Among many ranks a pipe is small, since there may be one for each pair: 4 KiB for 32 ranks and
// more. Much data then take a turn of both ranks for every few KiB. So a pipe grows with use: when
// something has not fit into it, its writer makes a large pipe, says in the old one where that is,
// and goes on there. The reader does the same when it comes to that record. What was small stays in
// the old pipe, which is freed with the Comm. A large pipe holds more than a Comm of two ranks has:
// many ranks mostly share cores, so that each turn is one of the scheduler.
//
// Memory stays bounded: a pipe grows once, and a rank makes at most grownMost large ones for a
// Comm, for the peers that come first: 2 MiB for each rank that sends much to eight others. Those
// are its neighbors in a ring, a pipeline and a grid of three dimensions with room to spare; a rank
// that sends much to all others of its host has small pipes for the rest. Large messages do not
// need them where the receiver may read the sender's memory: see rendezvous.

// recordMoved says that the next record is in the larger pipe. It is an offer of nothing, which no message begins with.
const recordMoved = RecordOffer | inRing

// moved reports whether e is such a record.
func (e *cell) moved() bool { return e.where&0xff == recordMoved }

// grownMost is how many of its pipes a rank makes large, among n on its host.
func grownMost(n int) int {
	if tuning.PipeSize(n) == tuning.PipeMax {
		return 0
	}
	return 8
}

// largeBytes is the size of a large pipe.
const largeBytes = pipeHead + 256<<10

// grown is where the larger pipe is, once the writer has made it.
func (p *pipe) grown() *atomic.Uint64 { return (*atomic.Uint64)(unsafe.Pointer(&p.mem[grownAt])) }

// grow moves to a larger pipe, if there is to be one. What has been written is read in the old one first.
func (w *PipeWriter) grow() bool {
	e := w.cell()
	if w.pipe.larger == nil || e == nil {
		return false
	}
	off, mem := w.pipe.larger(0)
	w.pipe.larger = nil
	if mem == nil {
		return false
	}
	w.pipe.grown().Store(off)
	e.bytes, e.nth = math.MaxUint64, math.MaxUint64 // of no message
	w.post(e, 0, 0, recordMoved, 1)
	w.pipe = newPipe(mem)
	w.wrote, w.freed, w.free, w.next, w.took = 0, 0, len(w.pipe.ring), 0, make([]uint32, len(w.pipe.cells))
	for i := range w.pipe.chunks { // beside what it has kept of the other direction's
		w.push(uint8(i))
	}
	return true
}

// follow goes on in the larger pipe, which the next record tells of. It is false if that cannot be mapped.
func (r *pipeReader) follow() bool {
	if r.pipe.larger == nil {
		return false
	}
	_, mem := r.pipe.larger(r.pipe.grown().Load())
	if mem == nil {
		return false
	}
	r.pipe = newPipe(mem)
	r.read, r.told, r.ringTaken = 0, 0, 0
	return true
}

// makeLarger makes a large pipe from this rank, and notes it in this rank's row; nil if there is to
// be none, or no memory.
func (c *ends) makeLarger(uint64) (uint64, []byte) {
	n := c.rank.Share.N
	row, err := c.row(c.rank.Share.Me, true)
	if err != nil || c.grown == grownMost(n) {
		return 0, nil
	}
	off, mem, err := c.rank.Share.Make(largeBytes)
	if err != nil {
		return 0, nil
	}
	row[int(classes)*n+c.grown].Store(off)
	c.grown++
	return off, mem
}

// mapLarger maps a large pipe to this rank; nil if it cannot.
func (c *ends) mapLarger(off uint64) (uint64, []byte) {
	mem, err := c.rank.Share.View(off, largeBytes)
	if err != nil {
		return 0, nil
	}
	return off, mem
}

// errUnmapped is why what is in a larger pipe cannot be read.
var errUnmapped = errors.New("a larger pipe cannot be mapped")

// unmapped is the failure of a rank that cannot map a pipe that has grown.
func (c *ends) unmapped(peer int) *call.Fault {
	return c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "no memory for the messages of rank %d", peer))
}
