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
func (c *Reach) MakeMemory(n int) ([]byte, error) { return shm.MakeMemory(c.Site.Host, n) }

// view is one such mapping.
type view struct {
	mem    []byte
	number uint64 // how many were made before it
}

// mapped is where this process has mapped the MakeSlice memory at p of rank r.
func (c *Reach) mapped(r int, p *shm.Span) (unsafe.Pointer, *call.Fault) {
	rc := c
	at := shm.PlaceAt(p.Base, int(p.Size))
	v, ok := rc.Maps[at]
	if !ok {
		h := c.Site.Host
		mem, err := h.View(at.Off, int(at.Size))
		if err != nil {
			return nil, c.Stop(call.NewFault(call.Backend, c.Rank(), "%w", err))
		}
		if rc.Maps == nil {
			rc.Maps = map[shm.Place]view{}
		}
		v = view{mem, rc.mappings}
		rc.Maps[at] = v
		rc.mappings++
		rc.stale = h.Returned() != rc.returned
		c.Untidy = c.Untidy || rc.stale
	}
	if p.At >= p.Size {
		return nil, c.Stop(call.NewFault(call.Backend, c.LocalRank(r), "rank %d offers memory that is not there", c.LocalRank(r)))
	}
	return unsafe.Pointer(&v.mem[p.At]), nil
}

// sweep unmaps what has been freed. Memory in use does not overlap: of two mappings that do, the older is of memory
// that has been freed, and handed out again.
func (c *Reach) sweep() {
	rc, h := c, c.Site.Host
	rc.stale, rc.returned = false, h.Returned()
	known := h.Unused() // which are not in use, and then those that are, in their order
	byPlace := func(r, q shm.Range) int { return cmp.Compare(r.First(), q.First()) }
	slices.SortFunc(known, byPlace)
	var newest []shm.Place
	for at := range rc.Maps {
		newest = append(newest, at)
	}
	slices.SortFunc(newest, func(a, b shm.Place) int { return cmp.Compare(rc.Maps[b].number, rc.Maps[a].number) })
	for _, at := range newest {
		r := shm.RangeOf(at.Off, at.Size)
		i, _ := slices.BinarySearchFunc(known, r, byPlace)
		if i > 0 && known[i-1].Overlaps(r) || i < len(known) && known[i].Overlaps(r) {
			delete(rc.Maps, at)
			h.Drop(at)
			continue
		}
		known = slices.Insert(known, i, r)
	}
}
