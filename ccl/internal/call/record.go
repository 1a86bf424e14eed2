package call

import (
	"sync/atomic"
	"unsafe"
)

// The records of a rank's last calls are written by that rank and read by others while it goes on. The rank writes the
// record of a call, then the word entered, which publishes it; then it may write the record of the next, into the place of
// the one kept calls before. So a reader looks at entered twice: a record whose place the next call's does not take,
// before and after it was read, is whole.

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
