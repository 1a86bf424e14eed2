package cpu

import (
	"math/bits"
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/ordered"
)

// A pipe is a stream of bytes from one rank to another of the same host: a ring in
// shared memory with one writer and one reader.
type pipe struct {
	tail, head *atomic.Uint64 // bytes ever written, ever read
	buf        []byte         // a power of two
	seen       uint64         // the other side's counter, as last looked at
}

const pipeHead = 256

// pipeCap is the size of each pipe among n ranks of a host: if all of them talk to
// each other, the pipes take 4 MiB, or 4 KiB each.
func pipeCap(n int) int {
	c := (4 << 20) / max(n*n, 1)
	return max(4<<10, min(64<<10, 1<<(bits.Len(uint(c))-1)))
}

func pipeBytes(n int) int { return pipeHead + pipeCap(n) }

func newPipe(mem []byte) *pipe {
	return &pipe{tail: (*atomic.Uint64)(unsafe.Pointer(&mem[0])), head: (*atomic.Uint64)(unsafe.Pointer(&mem[128])), buf: mem[pipeHead:]}
}

// TrySend writes what fits.
func (p *pipe) TrySend(b []byte) (int, error) {
	tail := p.tail.Load()
	room := len(p.buf) - int(tail-p.seen)
	if room < len(b) {
		p.seen = p.head.Load()
		room = len(p.buf) - int(tail-p.seen)
	}
	n := min(room, len(b))
	if n == 0 {
		return 0, nil
	}
	at := int(tail) & (len(p.buf) - 1)
	k := copy(p.buf[at:], b[:n])
	copy(p.buf, b[k:n])
	ordered.Store((*uint64)(unsafe.Pointer(p.tail)), tail+uint64(n))
	return n, nil
}

// Peek is up to limit of the next bytes, as they lie; Discard says they are read.
func (p *pipe) Peek(_ []byte, limit int) ([]byte, error) {
	head := p.head.Load()
	if p.seen == head {
		p.seen = p.tail.Load()
	}
	n := min(int(p.seen-head), limit)
	at := int(head) & (len(p.buf) - 1)
	return p.buf[at:min(at+n, len(p.buf))], nil
}

// Discard takes n bytes that Peek has shown.
func (p *pipe) Discard(n int) {
	if n > 0 {
		ordered.Store((*uint64)(unsafe.Pointer(p.head)), p.head.Load()+uint64(n))
	}
}

// TryRecv reads what is there.
func (p *pipe) TryRecv(b []byte) (int, error) {
	n := 0
	for n < len(b) {
		v, _ := p.Peek(nil, len(b)-n)
		if len(v) == 0 {
			break
		}
		n += copy(b[n:], v)
		p.Discard(len(v))
	}
	return n, nil
}

// pipeTo makes the pipe from this rank to rank r of this host: its place is written
// into this rank's row of places.
func (c *Comm) pipeTo(r int, cl class) (*pipe, error) {
	row, err := c.row(c.me, true)
	if err != nil {
		return nil, err
	}
	off, err := c.site.host.alloc(pipeBytes(c.n))
	if err != nil {
		return nil, err
	}
	mem, err := c.site.host.view(off, pipeBytes(c.n))
	if err != nil {
		return nil, err
	}
	c.views = append(c.views, off)
	row[int(cl)*c.n+r].Store(off)
	return newPipe(mem), nil
}

// pipeFrom is the pipe from rank r of this host, nil while r has not made it.
func (c *Comm) pipeFrom(r int, cl class) (*pipe, error) {
	row, err := c.row(r, false)
	if row == nil || err != nil {
		return nil, err
	}
	off := row[int(cl)*c.n+c.me].Load()
	if off == 0 {
		return nil, nil
	}
	mem, err := c.site.host.view(off, pipeBytes(c.n))
	if err != nil {
		return nil, err
	}
	c.views = append(c.views, off)
	return newPipe(mem), nil
}

// row is where rank r's pipes to the ranks of this host are, nil if it has none.
func (c *Comm) row(r int, make bool) ([]atomic.Uint64, error) {
	off := c.local.row(r).Load()
	if off == 0 {
		if !make {
			return nil, nil
		}
		var err error
		if off, err = c.site.host.alloc(c.rowBytes()); err != nil {
			return nil, err
		}
	}
	mem, err := c.site.host.view(off, c.rowBytes())
	if err != nil {
		return nil, err
	}
	c.views = append(c.views, off)
	if make {
		c.local.row(r).Store(off)
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[0])), c.rowBytes()/8), nil
}

// rowBytes is the size of a row: a place for each rank and class.
func (c *Comm) rowBytes() int { return 8 * c.n * int(classes) }

// pipesOf lists the pipes of the row at off, and the row.
func (c *Comm) pipesOf(off uint64) []uint64 {
	list := []uint64{off}
	mem, err := c.site.host.view(off, c.rowBytes())
	if err != nil {
		return list
	}
	defer c.site.host.drop(off)
	for _, p := range unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), c.rowBytes()/8) {
		if p != 0 {
			list = append(list, p)
		}
	}
	return list
}
