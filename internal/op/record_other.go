//go:build race || !amd64

package op

import "unsafe"

// StoreRecord writes to p what its rank says of the call in r, word by word: each is a release, so that it comes after the
// store that has published the record before. The race detector sees what is meant, too.
func StoreRecord(p, r *Record, place uint64, hash uint32, kind Kind) {
	said := *r
	said.Place, said.Hash, said.Kind, said.End = place, hash, kind, 0
	to, from := RecordWords(p), (*[recordWordCount]uint64)(unsafe.Pointer(&said))
	for i := range to {
		to[i].Store(from[i])
	}
}
