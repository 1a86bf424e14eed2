package op

import (
	"sync/atomic"
	"unsafe"
)

// Record describes one call: what ranks compare, and what the flight recorder keeps. Other
// processes read it: it is plain memory, in whole words.
type Record struct {
	Place, Count uint64 // Place is in an order that several ranks share: see Order of package plane
	Start, End   int64  // coarse nanoseconds since the Comm was made
	Seq          uint64 // among the calls of its rank, as the user counts them; 0 for a call of the Comm's own
	Root         int32  // or peer; -1 if none, less a number that ranks compare as well
	Hash         uint32
	Kind         Kind
	Type         Type
	Op           Op
	State        uint8
	Times        float32 // the factor of an Op that scales, rounded, for people
}

// SetWhat copies what is called, from Kind to Times, as the one word that it is.
func (r *Record) SetWhat(from *Record) {
	*(*uint64)(unsafe.Pointer(&r.Kind)) = *(*uint64)(unsafe.Pointer(&from.Kind))
}

// The word that SetWhat copies: the array has no elements, or does not compile.
var _ [0]byte = [unsafe.Offsetof(Record{}.Kind)%8 + unsafe.Sizeof(Record{}) - unsafe.Offsetof(Record{}.Kind) - 8]byte{}

// The records of a rank's last calls are written by that rank and read by others while it goes on.
// The rank writes the record of a call, then the word entered, which publishes it; then it may
// write the record of the next, into the place of the one kept calls before. So a reader looks at
// entered twice: a record whose place the next call's does not take, before and after it was read,
// is whole.

const recordWordCount = unsafe.Sizeof(Record{}) / 8

var _ [0]byte = [unsafe.Sizeof(Record{}) % 8]byte{} // whole words

// RecordWords returns p as words that are read and written atomically.
func RecordWords(p *Record) *[recordWordCount]atomic.Uint64 {
	return (*[recordWordCount]atomic.Uint64)(unsafe.Pointer(p))
}

// LoadRecord reads a record that its rank may be writing. Each load is an acquire: what is loaded next comes after it.
func LoadRecord(p *Record) (r Record) {
	to, from := (*[recordWordCount]uint64)(unsafe.Pointer(&r)), RecordWords(p)
	for i := range to {
		to[i] = from[i].Load()
	}
	return r
}

// StoreRecord writes to p what its rank says of the call in r. The caller has just written r.Hash
// and r.Place, and passes both.
//
// Where stores keep their order it writes field by field: wide loads of what has just been written
// in narrow stores would wait for these to leave the store buffer, and the compiler would load the
// hash together with r.Root. Elsewhere it writes word by word: each is a release, so that it comes
// after the store that has published the record before.
func StoreRecord(p, r *Record, place uint64, hash uint32, kind Kind) {
	if keepsStores {
		p.Place, p.Count, p.Start, p.End = place, r.Count, r.Start, 0
		p.Root, p.Hash, p.Seq = r.Root, hash, r.Seq
		p.SetWhat(r)
		p.Kind = kind
		return
	}
	said := *r
	said.Place, said.Hash, said.Kind, said.End = place, hash, kind, 0
	to, from := RecordWords(p), (*[recordWordCount]uint64)(unsafe.Pointer(&said))
	for i := range to {
		to[i].Store(from[i])
	}
}
