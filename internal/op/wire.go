package op

import (
	"encoding/binary"
	"math"
)

// RecordWire is the size of an encoded record: all of it but the times, which are of its rank's clock.
const RecordWire = 8 + 8 + 4 + 4 + 4 + 8 + 4

// Encode writes r to b.
func (r *Record) Encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.Place)
	le.PutUint64(b[8:], r.Count)
	le.PutUint32(b[16:], uint32(r.Root))
	le.PutUint32(b[20:], r.Hash)
	b[24], b[25], b[26], b[27] = byte(r.Kind), byte(r.Type), byte(r.Op), r.State
	le.PutUint64(b[28:], r.Seq)
	le.PutUint32(b[36:], math.Float32bits(r.Times))
}

// Decode reads what Encode has written.
func (r *Record) Decode(b []byte) {
	le := binary.LittleEndian
	r.Place, r.Count = le.Uint64(b[0:]), le.Uint64(b[8:])
	r.Root, r.Hash = int32(le.Uint32(b[16:])), le.Uint32(b[20:])
	r.Kind, r.Type, r.Op, r.State = Kind(b[24]), Type(b[25]), Op(b[26]), b[27]
	r.Seq, r.Times = le.Uint64(b[28:]), math.Float32frombits(le.Uint32(b[36:]))
}
