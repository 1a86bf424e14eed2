package tcp

import (
	"encoding/binary"
	"fmt"
)

// Key names a stream between two ranks of one communicator. Both ends pass the
// same Key; each Key is one connection, used both ways.
type Key struct {
	Comm   uint64 // the communicator
	Stream uint32 // which of the streams between the two ranks
	A, B   uint32 // the two ranks in Comm; A < B
}

// MakeKey returns the Key of a stream between ranks r1 and r2, in either order.
func MakeKey(comm uint64, stream, r1, r2 uint32) Key {
	return Key{comm, stream, min(r1, r2), max(r1, r2)}
}

func (k Key) String() string {
	return fmt.Sprintf("stream %d of ranks %d and %d in communicator %#x", k.Stream, k.A, k.B, k.Comm)
}

// endID is one of the two ends of a stream. Both may live in one Node.
type endID struct {
	Key
	self uint32
}

func (k Key) end(self uint32) (endID, error) {
	if k.A >= k.B {
		return endID{}, fmt.Errorf("tcp: %v: a key has A < B", k)
	}
	if self != k.A && self != k.B {
		return endID{}, fmt.Errorf("tcp: %v: rank %d is neither of them", k, self)
	}
	return endID{k, self}, nil
}

func (e endID) peer() endID { return endID{e.Key, e.A ^ e.B ^ e.self} }

// helloLen is the size of the hello that a dialing end sends:
// Comm 8, Stream 4, A 4, B 4, the dialing rank 4; big-endian.
const helloLen = 24

func (e endID) hello() []byte {
	b := make([]byte, 0, helloLen)
	b = binary.BigEndian.AppendUint64(b, e.Comm)
	b = binary.BigEndian.AppendUint32(b, e.Stream)
	b = binary.BigEndian.AppendUint32(b, e.A)
	b = binary.BigEndian.AppendUint32(b, e.B)
	return binary.BigEndian.AppendUint32(b, e.self)
}

// parseHello returns the end that dialed.
func parseHello(b []byte) (endID, error) {
	if len(b) != helloLen {
		return endID{}, fmt.Errorf("tcp: a hello of %d bytes, not %d", len(b), helloLen)
	}
	u32 := binary.BigEndian.Uint32
	key := Key{binary.BigEndian.Uint64(b), u32(b[8:]), u32(b[12:]), u32(b[16:])}
	return key.end(u32(b[20:]))
}
