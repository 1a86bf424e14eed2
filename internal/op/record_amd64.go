//go:build !race

package op

// StoreRecord writes to p what its rank says of the call in r, field by field: wide loads of what has just been
// written in narrow stores would wait for these to leave the store buffer. The caller has just written r.Hash and r.Place,
// so it passes both: the hash the compiler would otherwise load together with r.Root. x86 keeps the order of stores.
func StoreRecord(p, r *Record, place uint64, hash uint32, kind Kind) {
	p.Place, p.Count, p.Start, p.End = place, r.Count, r.Start, 0
	p.Root, p.Hash, p.Seq = r.Root, hash, r.Seq
	p.SetWhat(r)
	p.Kind = kind
}
