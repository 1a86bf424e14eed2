//go:build !race

package cpu

import "unsafe"

// The last calls of a rank are written by it and read by whoever looks into its region, who compares the
// number before and after: a torn record is of no number that is looked for.

// storeRecord writes to p what its rank says of the call in r, field by field: wide loads of what has just been
// written in narrow stores would wait for these to leave the store buffer.
func storeRecord(p, r *Record, seq uint64, number uint32, kind Kind) {
	p.Seq, p.Count, p.Start, p.End = seq, r.Count, r.Start, 0
	p.Root, p.Hash, p.Number = r.Root, r.Hash, number
	p.Kind, p.Type, p.Op, p.State = kind, r.Type, r.Op, r.State
}

func loadRecord(p *Record) Record { return *p }

// A pin is written before the flag of its round, and read after that. Who finds the one that its owner takes back, or nil,
// finds something that holds; so a word that is stored and loaded whole is enough.

func storePin(pin *unsafe.Pointer, p unsafe.Pointer) { *pin = p }

func loadPin(pin *unsafe.Pointer) unsafe.Pointer { return *pin }
