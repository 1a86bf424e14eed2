package cpu

import (
	"cmp"
	"slices"
	"unsafe"
)

// A Comm keeps what it has mapped of the others' MakeSlice memory, until that has been freed. Mappings are made in the
// midst of calls, which hold pointers into them, and unmapped between calls.

// view is one such mapping.
type view struct {
	mem    []byte
	number uint64 // how many were made before it
}

// mapped is where this process has mapped the MakeSlice memory at p of rank r.
func (c *Comm) mapped(r int, p *span) (unsafe.Pointer, *Fault) {
	rc := &c.reach
	at := placeAt(p.base, int(p.size))
	v, ok := rc.maps[at]
	if !ok {
		h := c.site.host
		mem, err := h.view(at.off, int(at.size))
		if err != nil {
			return nil, c.stop(fault(Backend, c.rank, "%w", err))
		}
		if rc.maps == nil {
			rc.maps = map[place]view{}
		}
		v = view{mem, rc.mapped}
		rc.maps[at] = v
		rc.mapped++
		rc.stale = h.head.space.gone.Load() != rc.gone
		c.untidy = c.untidy || rc.stale
	}
	if p.at >= p.size {
		return nil, c.stop(fault(Backend, c.localRank(r), "rank %d offers memory that is not there", c.localRank(r)))
	}
	return unsafe.Pointer(&v.mem[p.at]), nil
}

// sweep unmaps what has been freed. Memory in use does not overlap: of two mappings that do, the older is of memory
// that has been freed, and handed out again.
func (c *Comm) sweep() {
	rc, h := &c.reach, c.site.host
	rc.stale, rc.gone = false, h.head.space.gone.Load()
	known := h.head.space.ranges() // which are not in use, and then those that are, in their order
	byPlace := func(r, q memoryRange) int { return cmp.Compare(r.first(), q.first()) }
	slices.SortFunc(known, byPlace)
	var newest []place
	for at := range rc.maps {
		newest = append(newest, at)
	}
	slices.SortFunc(newest, func(a, b place) int { return cmp.Compare(rc.maps[b].number, rc.maps[a].number) })
	for _, at := range newest {
		r := rangeOf(at.off, at.size)
		i, _ := slices.BinarySearchFunc(known, r, byPlace)
		if i > 0 && known[i-1].overlaps(r) || i < len(known) && known[i].overlaps(r) {
			delete(rc.maps, at)
			h.drop(at)
			continue
		}
		known = slices.Insert(known, i, r)
	}
}
