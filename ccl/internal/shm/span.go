package shm

import "unsafe"

// Span says where memory lies, such that the other ranks of the host can find it.
type Span struct {
	Base, Size uint64 // the region it is in; size is 0 if it is in none
	At         uint64 // its offset there, or its address in its process
}

// Shared reports whether all ranks can touch what lies at p: nothing, or memory from MakeMemory.
func (p *Span) Shared() bool { return p.Size != 0 || p.At == 0 }

// SpanOf says where b lies.
func (h *Host) SpanOf(b []byte) Span {
	if h.Shared() {
		if m := memoryAt(b); m != nil && m.host == h.Slices() {
			return m.span(b)
		}
	}
	return Span{At: uint64(uintptr(addressOf(b)))}
}

func addressOf(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// Edges returns how many of the n bytes at p, at the beginning and at the end, lie in pages whose
// rest may belong to another part of the slice. No other rank writes there: then TakeBack need not
// replace such a page.
func (p *Span) Edges(n int) (lead, tail int) {
	if p.Size == 0 || n == 0 {
		return 0, 0
	}
	first, end := p.At, p.At+uint64(n)
	lead = int(-first & uint64(Page-1))
	if end != p.Size {
		tail = int(end & uint64(Page-1))
	}
	if lead+tail > n || first/uint64(Page) == (end-1)/uint64(Page) && lead+tail > 0 {
		return n, 0 // no page is its own
	}
	return lead, tail
}
