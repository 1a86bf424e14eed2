package links

import (
	"sync/atomic"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// Where the pipes of a Comm are: each rank has a row of places, in which it writes where it has made a pipe.

// PipeTo makes the pipe from this rank to rank r of this host: its place is written
// into this rank's row of places.
func (c *ends) PipeTo(r int, cl class) (*PipeWriter, error) {
	row, err := c.row(c.Me, true)
	if err != nil {
		return nil, err
	}
	off, err := c.Site.Host.Alloc(pipeBytes(c.N))
	if err != nil {
		return nil, err
	}
	mem, err := c.Site.Host.View(off, pipeBytes(c.N))
	if err != nil {
		c.Site.Host.Free(off, pipeBytes(c.N))
		return nil, err
	}
	c.Views = append(c.Views, shm.PlaceAt(off, pipeBytes(c.N)))
	w := newPipeWriter(mem)
	w.beginAt(c.Start)
	w.crowded = c.Spins == plane.SpinsCrowded
	row[int(cl)*c.N+r].Store(off)
	return w, nil
}

// PipeFrom is the pipe from rank r of this host, nil while r has not made it.
func (c *ends) PipeFrom(r int, cl class) (*pipeReader, error) {
	row, err := c.row(r, false)
	if row == nil || err != nil {
		return nil, err
	}
	off := row[int(cl)*c.N+c.Me].Load()
	if off == 0 {
		return nil, nil
	}
	mem, err := c.Site.Host.View(off, pipeBytes(c.N))
	if err != nil {
		return nil, err
	}
	c.Views = append(c.Views, shm.PlaceAt(off, pipeBytes(c.N)))
	p := newPipeReader(mem, c.ID())
	p.beginAt(c.Start)
	return p, nil
}

// row is where rank r's pipes to the ranks of this host are, nil if it has none.
func (c *ends) row(r int, make bool) ([]atomic.Uint64, error) {
	off := c.Local.Row(r).Load()
	if off == 0 {
		if !make {
			return nil, nil
		}
		var err error
		if off, err = c.Site.Host.Alloc(rowBytes(c.N)); err != nil {
			return nil, err
		}
	}
	mem, err := c.Site.Host.View(off, rowBytes(c.N))
	if err != nil {
		if make && c.Local.Row(r).Load() == 0 {
			c.Site.Host.Free(off, rowBytes(c.N))
		}
		return nil, err
	}
	c.Views = append(c.Views, shm.PlaceAt(off, rowBytes(c.N)))
	if make {
		c.Local.Row(r).Store(off)
	}
	return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[0])), rowBytes(c.N)/8), nil
}

// rowBytes is the size of a row: a place for each rank and class.
func rowBytes(n int) int { return 8 * n * int(classes) }

// PipesOf lists the row at off, and its pipes.
func PipesOf(h *shm.Host, n int, off uint64) []shm.Place {
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
