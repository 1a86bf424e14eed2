package tcp

import "net/netip"

// Book holds at which address each rank of a job is reached: 6 bytes a rank, and each host's address once, since every process of
// a job has a Book of all its ranks.
type Book struct {
	hosts []netip.Addr
	host  []uint32 // by rank, in hosts
	port  []uint16
}

// BookOf is the book of ranks with these addresses.
func BookOf(addrs ...netip.AddrPort) Book {
	b := Book{host: make([]uint32, len(addrs)), port: make([]uint16, len(addrs))}
	known := make(map[netip.Addr]uint32)
	for r, a := range addrs {
		at, ok := known[a.Addr()]
		if !ok {
			at = uint32(len(b.hosts))
			known[a.Addr()] = at
			b.hosts = append(b.hosts, a.Addr())
		}
		b.host[r], b.port[r] = at, a.Port()
	}
	return b
}

// Len is how many ranks b has: 0 where all are on one host.
func (b *Book) Len() int { return len(b.port) }

// At is the address of rank r.
func (b *Book) At(r int) netip.AddrPort {
	return netip.AddrPortFrom(b.hosts[b.host[r]], b.port[r])
}
