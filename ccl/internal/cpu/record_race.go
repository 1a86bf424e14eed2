//go:build race

package cpu

import (
	"sync/atomic"
	"unsafe"
)

// Under the race detector the same, word by word, so that it sees what is meant.

type recordWords [unsafe.Sizeof(Record{}) / 8]uint64

func storeRecord(p, r *Record, seq uint64, number uint32, kind Kind) {
	said := *r
	said.Seq, said.Number, said.Kind = seq, number, kind
	to, from := (*recordWords)(unsafe.Pointer(p)), (*recordWords)(unsafe.Pointer(&said))
	for i := range to {
		atomic.StoreUint64(&to[i], from[i])
	}
}

func loadRecord(p *Record) (r Record) {
	to, from := (*recordWords)(unsafe.Pointer(&r)), (*recordWords)(unsafe.Pointer(p))
	for i := range to {
		to[i] = atomic.LoadUint64(&from[i])
	}
	return r
}

var _ [0]byte = [unsafe.Sizeof(Record{}) % 8]byte{} // whole words
