//go:build !race

package call

// StoreRecord writes to p what its rank says of the call in r, field by field: wide loads of what has just been
// written in narrow stores would wait for these to leave the store buffer. x86 keeps the order of stores.
func StoreRecord(p, r *Record, seq uint64, number uint64, kind Kind) {
	p.Seq, p.Count, p.Start, p.End = seq, r.Count, r.Start, 0
	p.Root, p.Hash, p.Number = r.Root, r.Hash, number
	p.Kind, p.Type, p.Op, p.State = kind, r.Type, r.Op, r.State
	p.Times = r.Times
}
