package op

import (
	"encoding/binary"
	"math"
)

// RecordWire is the size of an encoded record: what is compared of it.
const RecordWire = 8 + 8 + 4 + 4 + 4

// Encode writes to b what is compared of r.
func (r *Record) Encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.Seq)
	le.PutUint64(b[8:], r.Count)
	le.PutUint32(b[16:], uint32(r.Root))
	le.PutUint32(b[20:], r.Hash)
	b[24], b[25], b[26], b[27] = byte(r.Kind), byte(r.Type), byte(r.Op), r.State
}

// Decode reads what Encode has written.
func (r *Record) Decode(b []byte) {
	le := binary.LittleEndian
	r.Seq, r.Count = le.Uint64(b[0:]), le.Uint64(b[8:])
	r.Root, r.Hash = int32(le.Uint32(b[16:])), le.Uint32(b[20:])
	r.Kind, r.Type, r.Op, r.State = Kind(b[24]), Type(b[25]), Op(b[26]), b[27]
}

// NumberedWire is the size of a record with its number and factor.
const NumberedWire = RecordWire + 8 + 4

// EncodeNumbered is Encode with the number and the factor.
func (r *Record) EncodeNumbered(b []byte) {
	r.Encode(b)
	binary.LittleEndian.PutUint64(b[RecordWire:], r.Number)
	binary.LittleEndian.PutUint32(b[RecordWire+8:], math.Float32bits(r.Times))
}

// DecodeNumbered reads what EncodeNumbered has written.
func (r *Record) DecodeNumbered(b []byte) {
	r.Decode(b)
	r.Number = binary.LittleEndian.Uint64(b[RecordWire:])
	r.Times = math.Float32frombits(binary.LittleEndian.Uint32(b[RecordWire+8:]))
}
