package tcp

import (
	"net/netip"
	"slices"
)

// Book holds at which address each rank of a job is reached. Every process of a job has one of all ranks, so it is small: 2 bytes
// for each rank, 8 for each run of ranks with one address, and each address once.
type Book struct {
	v4    [][4]byte
	other []netip.Addr // that are no IPv4 addresses
	from  []uint32     // the first rank of each run
	host  []uint32     // its address: in v4, and counted from the end of the numbers in other
	port  []uint16     // by rank
}

// BookOf is the book of ranks with these addresses.
func BookOf(addrs ...netip.AddrPort) Book {
	b := Book{port: make([]uint16, len(addrs))}
	known := make(map[netip.Addr]uint32)
	for r, a := range addrs {
		b.port[r] = a.Port()
		at, ok := known[a.Addr()]
		if !ok {
			if a.Addr().Is4() {
				at = uint32(len(b.v4))
				b.v4 = append(b.v4, a.Addr().As4())
			} else {
				at = ^uint32(len(b.other))
				b.other = append(b.other, a.Addr())
			}
			known[a.Addr()] = at
		}
		if r == 0 || at != b.host[len(b.host)-1] {
			b.from, b.host = append(b.from, uint32(r)), append(b.host, at)
		}
	}
	b.v4, b.from, b.host = slices.Clone(b.v4), slices.Clone(b.from), slices.Clone(b.host) // without room to grow
	return b
}

// Len is how many ranks b has: 0 where all are on one host.
func (b *Book) Len() int { return len(b.port) }

// At is the address of rank r.
func (b *Book) At(r int) netip.AddrPort {
	i, is := slices.BinarySearch(b.from, uint32(r))
	if !is {
		i--
	}
	if at := b.host[i]; at >= uint32(len(b.v4)) {
		return netip.AddrPortFrom(b.other[^at], b.port[r])
	}
	return netip.AddrPortFrom(netip.AddrFrom4(b.v4[b.host[i]]), b.port[r])
}
