package cpu

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/shm"
)

// Where the pipes of a Comm are: each rank has a row of places, in which it writes where it has made a pipe.

// pipeTo makes the pipe from this rank to rank r of this host: its place is written
// into this rank's row of places.
func (c *Links) pipeTo(r int, cl class) (*pipeWriter, error) {
	row, err := c.row(c.me, true)
	if err != nil {
		return nil, err
	}
	off, err := c.site.host.Alloc(pipeBytes(c.n))
	if err != nil {
		return nil, err
	}
	mem, err := c.site.host.View(off, pipeBytes(c.n))
	if err != nil {
		c.site.host.Free(off, pipeBytes(c.n))
		return nil, err
	}
	c.views = append(c.views, shm.PlaceAt(off, pipeBytes(c.n)))
	w := newPipeWriter(mem)
	w.beginAt(c.start)
	row[int(cl)*c.n+r].Store(off)
	return w, nil
}

// pipeFrom is the pipe from rank r of this host, nil while r has not made it.
func (c *Links) pipeFrom(r int, cl class) (*pipeReader, error) {
	row, err := c.row(r, false)
	if row == nil || err != nil {
		return nil, err
	}
	off := row[int(cl)*c.n+c.me].Load()
	if off == 0 {
		return nil, nil
	}
	mem, err := c.site.host.View(off, pipeBytes(c.n))
	if err != nil {
		return nil, err
	}
	c.views = append(c.views, shm.PlaceAt(off, pipeBytes(c.n)))
	p := newPipeReader(mem, c.id)
	p.beginAt(c.start)
	return p, nil
}

// row is where rank r's pipes to the ranks of this host are, nil if it has none.
func (c *Links) row(r int, make bool) ([]atomic.Uint64, error) {
	off := c.local.row(r).Load()
	if off == 0 {
		if !make {
			return nil, nil
		}
		var err error
		if off, err = c.site.host.Alloc(rowBytes(c.n)); err != nil {
			return nil, err
		}
	}
	mem, err := c.site.host.View(off, rowBytes(c.n))
	if err != nil {
		if make && c.local.row(r).Load() == 0 {
			c.site.host.Free(off, rowBytes(c.n))
		}
		return nil, err
	}
	c.views = append(c.views, shm.PlaceAt(off, rowBytes(c.n)))
	if make {
		c.local.row(r).Store(off)
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[0])), rowBytes(c.n)/8), nil
}

// rowBytes is the size of a row: a place for each rank and class.
func rowBytes(n int) int { return 8 * n * int(classes) }

// pipesOf lists the row at off, and its pipes.
func pipesOf(h *shm.Host, n int, off uint64) []shm.Place {
	row := shm.PlaceAt(off, rowBytes(n))
	list := []shm.Place{row}
	mem, err := h.View(off, rowBytes(n))
	if err != nil {
		return list
	}
	defer h.Drop(row)
	for _, p := range unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), rowBytes(n)/8) {
		if p != 0 {
			list = append(list, shm.PlaceAt(p, pipeBytes(n)))
		}
	}
	return list
}
