//go:build amd64 && !noasm && !race

package cpu

// storeRelease stores v after all stores before it. x86 keeps the order of stores,
// so a plain one will do, where atomic.StoreUint64 is an XCHG, 10 ns dearer.
//
//go:noescape
func storeRelease(p *uint64, v uint64)
