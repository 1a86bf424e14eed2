package cpu

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

func recordWords(p *Record) *[recordWordCount]atomic.Uint64 {
	return (*[recordWordCount]atomic.Uint64)(unsafe.Pointer(p))
}

// loadRecord reads a record that its rank may be writing. Each load is an acquire: what is loaded next comes after it.
func loadRecord(p *Record) (r Record) {
	to, from := (*[recordWordCount]uint64)(unsafe.Pointer(&r)), recordWords(p)
	for i := range to {
		to[i] = from[i].Load()
	}
	return r
}

// made is the record of collective seq that rank r of this host has made, if it is one of its last.
func (c *Member) made(r int, seq uint64) (Record, bool) {
	if !c.keeps(r, seq) {
		return Record{}, false
	}
	rec := loadRecord(c.local.call(r, seq))
	// If a word of it is of a later call, that call's predecessor is seen as published now.
	return rec, rec.Seq == seq && c.keeps(r, seq)
}

// keeps reports whether rank r of this host has published collective seq, and is not about to write over its record.
func (c *Member) keeps(r int, seq uint64) bool {
	last := c.local.entered(r).Load() >> 32
	ahead := int32(uint32(last) - uint32(seq))
	return ahead >= 0 && ahead < int32(c.local.kept)-1
}
