package verify

import "bytes"

// block is how many elements have values of their own; after them they come again,
// turned by a hash of the block's number, so that no two stretches of a buffer are
// alike. It makes filling and checking as fast as copying and comparing memory. A
// prime, so that no chunk is a multiple of it.
const block = 1021

// Wrong is the first element that is not what it should be.
type Wrong struct {
	Index     int // within what was checked
	Got, Want uint64
	Input     bool // of a rank's input, which was to stay as it is; else of a result
}

// Fill writes rank's input, from element off on, to dst.
func (p *Pattern) Fill(dst []byte, rank, off int) {
	p.walk(dst, off, p.table(rank), func(part, want []byte) { copy(part, want) })
}

// Poison fills dst so that each element is wrong where Check(dst, rank, off) would
// look for it: whatever a call leaves unwritten is found.
func (p *Pattern) Poison(dst []byte, rank, off int) {
	p.poison = p.poison[:0]
	for _, b := range p.table(rank) {
		p.poison = append(p.poison, ^b)
	}
	p.walk(dst, off, p.poison, func(part, bad []byte) { copy(part, bad) })
}

// Check compares got with rank's input, or with the reduced inputs, from element
// off on. It counts the elements that differ, and gives the first.
func (p *Pattern) Check(got []byte, rank, off int) (wrong int, first Wrong) {
	size, done := p.Type.Size(), 0
	p.walk(got, off, p.table(rank), func(part, want []byte) {
		if !bytes.Equal(part, want[:len(part)]) {
			for i := 0; i < len(part); i += size {
				g, w := get(part[i:], size), get(want[i:], size)
				if g == w {
					continue
				}
				if wrong == 0 {
					first = Wrong{Index: done + i/size, Got: g, Want: w}
				}
				wrong++
			}
		}
		done += len(part) / size
	})
	return wrong, first
}

// walk calls f with successive parts of buf, which begins with element off, and what belongs there by a table.
func (p *Pattern) walk(buf []byte, off int, table []byte, f func(part, want []byte)) {
	size := p.Type.Size()
	for len(buf) > 0 {
		number, at := off/block, off%block
		turn := int(hash(p.Seed, uint64(number), 1<<43) % block)
		n := min(len(buf)/size, block-at)
		f(buf[:n*size], table[(turn+at)*size:])
		buf, off = buf[n*size:], off+n
	}
}

// table is a block of rank's elements, twice, so that it can be read from any turn.
func (p *Pattern) table(rank int) []byte {
	if t := p.tables[rank]; t != nil {
		return t
	}
	size := p.Type.Size()
	t := make([]byte, 2*block*size)
	for x := range block {
		put(t[x*size:], size, p.bits(rank, x))
	}
	copy(t[block*size:], t[:block*size])
	if p.tables == nil {
		p.tables = map[int][]byte{}
	}
	p.tables[rank] = t
	return t
}
