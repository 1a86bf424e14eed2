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
	row, err := c.row(c.rank.Share.Me, true)
	if err != nil {
		return nil, err
	}
	off, mem, err := c.rank.Share.Make(pipeBytes(c.rank.Share.N))
	if err != nil {
		return nil, err
	}
	w := newPipeWriter(mem)
	w.beginAt(c.rank.Order.Start)
	w.crowded = c.rank.Share.Spins == plane.SpinsCrowded
	if cl != Agreements && grownMost(c.rank.Share.N) > 0 {
		w.pipe.larger = c.makeLarger
	}
	row[int(cl)*c.rank.Share.N+r].Store(off)
	return w, nil
}

// PipeFrom is the pipe from rank r of this host, nil while r has not made it.
func (c *ends) PipeFrom(r int, cl class) (*pipeReader, error) {
	row, err := c.row(r, false)
	if row == nil || err != nil {
		return nil, err
	}
	off := row[int(cl)*c.rank.Share.N+c.rank.Share.Me].Load()
	if off == 0 {
		return nil, nil
	}
	mem, err := c.rank.Share.View(off, pipeBytes(c.rank.Share.N))
	if err != nil {
		return nil, err
	}
	p := newPipeReader(mem, c.rank.Group.ID())
	p.beginAt(c.rank.Order.Start)
	p.pipe.larger = c.mapLarger
	return p, nil
}

// row is where rank r's pipes to the ranks of this host are, nil if it has none. It is mapped once:
// a rank that waits for a pipe asks again and again.
func (c *ends) row(r int, make bool) ([]atomic.Uint64, error) {
	if row := c.rows[r]; row != nil {
		return row, nil
	}
	mem, err := c.rank.Share.Map(c.rank.Share.Local.Row(r), rowBytes(c.rank.Share.N), make)
	if mem == nil {
		return nil, err
	}
	row := unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&mem[0])), len(mem)/8)
	if c.rows == nil {
		c.rows = map[int][]atomic.Uint64{}
	}
	c.rows[r] = row
	return row, nil
}

// rowBytes is the size of a row: a place for each rank and class, and one for each pipe that may grow.
func rowBytes(n int) int { return 8 * (n*int(classes) + grownMost(n)) }

// PipesOf lists the row at off, and its pipes.
func PipesOf(h *shm.Host, n int, off uint64) []shm.Place {
	row := shm.PlaceAt(off, rowBytes(n))
	list := []shm.Place{row}
	mem, err := h.View(off, rowBytes(n))
	if err != nil {
		return list
	}
	defer h.Drop(row)
	for i, p := range unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), rowBytes(n)/8) {
		if p != 0 && i < n*int(classes) {
			list = append(list, shm.PlaceAt(p, pipeBytes(n)))
		} else if p != 0 {
			list = append(list, shm.PlaceAt(p, largeBytes))
		}
	}
	return list
}
