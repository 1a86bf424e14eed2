//go:build amd64 && !noasm && !race

package cpu

// storeRelease stores v after all stores before it. x86 keeps the order of stores,
// so a plain one will do, where atomic.StoreUint64 is an XCHG, 10 ns dearer.
//
//go:noescape
func storeRelease(p *uint64, v uint64)

// postRelease is storeRelease, and asks for the cache line of next, which will be written soon: its
// reader has a copy, and to take that away takes as long as to send a flag.
//
//go:noescape
func postRelease(p *uint64, v uint64, next *uint64)
