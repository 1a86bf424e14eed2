package reach

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// A Comm keeps what it has mapped of the others' MakeSlice memory, until that has been freed. Mappings are made in the
// midst of calls, which hold pointers into them, and unmapped between calls.

// MakeMemory returns n bytes, all zero, that all ranks of this host can map. They outlive the Comm and the job.
func (c *Reach) MakeMemory(n int) ([]byte, error) { return shm.MakeMemory(c.rank.Site.Here.Host, n) }

// views are those mappings.
type views struct {
	maps     map[shm.Place]view // regions of other ranks' MakeSlice memory
	mappings uint64             // how many there have been
	returned uint64             // how many regions of the host had been given back when maps was last swept
	stale    bool               // it is to be swept
}

// Close unmaps them.
func (c *Reach) Close() {
	for at := range c.views.maps {
		c.rank.Share.Host.Slices().Drop(at)
	}
}

// view is one such mapping.
type view struct {
	mem    []byte
	number uint64 // how many were made before it
}

// mapped is where this process has mapped the MakeSlice memory at p of rank r.
func (c *Reach) mapped(r int, p *shm.Span) (unsafe.Pointer, *call.Fault) {
	at := shm.PlaceAt(p.Base, int(p.Size))
	v, ok := c.views.maps[at]
	if !ok {
		h := c.rank.Share.Host.Slices()
		mem, err := h.View(at.Off, int(at.Size))
		if err != nil {
			return nil, c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.Rank(), "%w", err))
		}
		if c.views.maps == nil {
			c.views.maps = map[shm.Place]view{}
		}
		v = view{mem, c.views.mappings}
		c.views.maps[at] = v
		c.views.mappings++
		c.views.stale = h.Returned() != c.views.returned
		c.Untidy = c.Untidy || c.views.stale
	}
	if p.At >= p.Size {
		return nil, c.rank.Stop(call.NewFault(call.Backend, c.rank.Group.LocalRank(r),
			"rank %d offers memory that is not there", c.rank.Group.LocalRank(r)))
	}
	return unsafe.Pointer(&v.mem[p.At]), nil
}

// sweep unmaps what has been freed. Memory in use does not overlap: of two mappings that do, the older is of memory
// that has been freed, and handed out again.
func (c *Reach) sweep() {
	h := c.rank.Share.Host.Slices()
	c.views.stale, c.views.returned = false, h.Returned()
	known := h.Unused() // which are not in use, and then those that are, in their order
	byPlace := func(r, q shm.Range) int { return cmp.Compare(r.First(), q.First()) }
	slices.SortFunc(known, byPlace)
	var newest []shm.Place
	for at := range c.views.maps {
		newest = append(newest, at)
	}
	slices.SortFunc(newest, func(a, b shm.Place) int {
		return cmp.Compare(c.views.maps[b].number,
			c.views.maps[a].number)
	})
	for _, at := range newest {
		r := shm.RangeOf(at.Off, at.Size)
		i, _ := slices.BinarySearchFunc(known, r, byPlace)
		if i > 0 && known[i-1].Overlaps(r) || i < len(known) && known[i].Overlaps(r) {
			delete(c.views.maps, at)
			h.Drop(at)
			continue
		}
		known = slices.Insert(known, i, r)
	}
}
