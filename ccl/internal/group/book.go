package group

import (
	"net/netip"
	"slices"

	"github.com/goccl/goccl/internal/algo"
)

// Book holds at which address each rank of a job is reached. Every process of a job has one of all
// ranks, so it is small: 2 bytes for each rank, 4 for each run of ranks with one address, and each
// address once. It has the ranks host by host, however they are placed, so the ranks of a host are
// one run where they listen at one address.
type Book struct {
	topo  algo.Topology // of the job
	v4    [][4]byte
	other []netip.Addr // that are no IPv4 addresses
	from  []uint32     // the first position of each run
	// its address: in v4, and counted from the end of the numbers in other; nil if each is the next of
	// v4
	host []uint32
	port []uint16 // by position
}

// BookOf is the book of the ranks of a job, which are placed so, with these addresses.
func BookOf(topo algo.Topology, addrs ...netip.AddrPort) Book {
	b := Book{topo: topo, port: make([]uint16, len(addrs))}
	known := make(map[netip.Addr]uint32)
	inTurn := true
	for pos := range addrs {
		a := addrs[topo.At(pos)]
		b.port[pos] = a.Port()
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
		if pos == 0 || at != b.host[len(b.host)-1] {
			inTurn = inTurn && at == uint32(len(b.host))
			b.from, b.host = append(b.from, uint32(pos)), append(b.host, at)
		}
	}
	b.v4, b.from, b.host = slices.Clone(b.v4), slices.Clone(b.from), slices.Clone(b.host) // without room to grow
	if inTurn {
		b.host = nil
	}
	return b
}

// Len is how many ranks b has: 0 where all are on one host.
func (b *Book) Len() int { return len(b.port) }

// At is the address of rank r.
func (b *Book) At(r int) netip.AddrPort {
	pos := b.topo.Position(r)
	at, begins := slices.BinarySearch(b.from, uint32(pos))
	if !begins {
		at--
	}
	if b.host != nil {
		h := b.host[at]
		if h >= uint32(len(b.v4)) {
			return netip.AddrPortFrom(b.other[^h], b.port[pos])
		}
		at = int(h)
	}
	return netip.AddrPortFrom(netip.AddrFrom4(b.v4[at]), b.port[pos])
}
