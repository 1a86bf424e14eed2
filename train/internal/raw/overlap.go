package raw

import (
	"cmp"
	"slices"
	"unsafe"

	"github.com/goccl/goccl/ccl"
)

// Places is memory for Overlap, which then allocates nothing.
type Places []place

// place is where a view lies, and which one it is.
type place struct {
	from, to uintptr
	id       int
}

// Overlap returns two of bufs that have elements in common, i before j: the first ones by address, on the host or a
// device. A view whose address is not known overlaps none.
func (p *Places) Overlap(bufs []ccl.Buf) (i, j int, overlap bool) {
	all := (*p)[:0]
	for i, b := range bufs {
		if at := address(b); at != 0 && b.Len() > 0 {
			all = append(all, place{at, at + uintptr(b.Len()*b.Type().Size()), i})
		}
	}
	*p = all
	slices.SortFunc(all, func(a, b place) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.id, b.id)) })
	for k := 1; k < len(all); k++ {
		if a, b := all[k-1], all[k]; b.from < a.to {
			return min(a.id, b.id), max(a.id, b.id), true
		}
	}
	return 0, 0, false
}

// address is where b begins, on the host or a device; 0 where that is not known.
func address(b ccl.Buf) uintptr {
	if at, ok := b.Addr(); ok {
		return at
	}
	s, _ := Bytes(b)
	return uintptr(unsafe.Pointer(unsafe.SliceData(s)))
}
