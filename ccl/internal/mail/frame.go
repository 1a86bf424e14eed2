package mail

import (
	"encoding/binary"
	"errors"
	"io"

	"github.com/goccl/goccl/internal/op"
)

// Path is what a message is matched by, beside its sender: the Comm, what it is for, and a tag.
type Path struct {
	Comm uint64
	Use  Use
	Tag  int64
}

// Use tells messages of package ccl's own from those of its users.
type Use uint8

const (
	Links        Use = iota // a user's
	Subset                  // between ranks that make a Comm: that one has come
	SubsetOffers            // what a rank takes only if it waits at this moment
	SubsetNews              // how an attempt goes on: all have come, or a rank has given up
	uses
)

// eager reports whether a message may be complete before it is received.
func (u Use) eager() bool { return u == Links || u == SubsetNews }

// kind is what a frame is.
type kind uint8

const (
	frameHead kind = 1 + iota
	frameGo
	frameData
	frameTaken
	frameRevoke
	frameRevoked
	frameBye
	frameBegin
	kinds
)

// What frameTaken says in code.
const (
	takenWell   uint8 = iota
	takenNot          // the receive is of another type or count, which the frame has
	takenClosed       // the receiver has closed the Comm
	takenFailed       // the Comm has failed on the receiver
	takenLeft         // the receive has ended before all of it had come
	takenCodes
)

const (
	// eagerMost is the largest payload that travels with its head, and may be kept by the receiver.
	eagerMost = 16 << 10
	// creditMost is how much of that a receiver keeps for one sender.
	creditMost = 1 << 20
	// pieceMost is the largest piece of a payload in one frame.
	pieceMost = 64 << 10
	// readMost is the largest piece that is read from another process, or copied from another rank of this one, at once.
	readMost = 256 << 10
	// countMost bounds what a head may say, so that sizes do not overflow.
	countMost = 1 << 56
)

// frame is the fixed part of what travels:
//
//	kind 1 | use 1 | type 1 | code 1 | n 4, of the bytes that follow | seq 8 | comm 8 | tag 8 | count 8 |
//	pid 8 | at 8, of the payload | word 8, where number lies | number 8
//
// Of a frameBegin seq is the number of the next message, count that of the first which may not have come by
// the streams before, and number that of the stream.
type frame struct {
	kind                  kind
	path                  Path
	typ                   op.Type
	code                  uint8
	n                     uint32
	seq, count            uint64
	pid, at, word, number uint64
}

const frameBytes = 8 + 8*8

func (f *frame) encode(b []byte) {
	b[0], b[1], b[2], b[3] = byte(f.kind), byte(f.path.Use), byte(f.typ), f.code
	binary.LittleEndian.PutUint32(b[4:], f.n)
	for i, x := range [...]uint64{f.seq, f.path.Comm, uint64(f.path.Tag), f.count, f.pid, f.at, f.word, f.number} {
		binary.LittleEndian.PutUint64(b[8+8*i:], x)
	}
}

var errFrame = errors.New("mail: a frame that makes no sense")

// decode reads what encode has written, and refuses what no Office writes.
func (f *frame) decode(b []byte) error {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	*f = frame{
		kind: kind(b[0]), path: Path{word(1), Use(b[1]), int64(word(2))}, typ: op.Type(b[2]), code: b[3],
		n: binary.LittleEndian.Uint32(b[4:]), seq: word(0), count: word(3), pid: word(4), at: word(5), word: word(6),
		number: word(7),
	}
	switch {
	case f.kind < frameHead || f.kind >= kinds || f.path.Use >= uses || f.code >= takenCodes || f.count > countMost,
		!f.typ.Valid() && (f.kind == frameHead || f.code == takenNot),
		f.kind == frameHead && f.n > 0 && (f.n > eagerMost || uint64(f.n) != f.bytes()),
		f.kind == frameData && (f.n == 0 || f.n > pieceMost),
		f.kind != frameHead && f.kind != frameData && f.n > 0:
		return errFrame
	}
	return nil
}

// bytes is the size of the payload.
func (f *frame) bytes() uint64 { return f.count * uint64(f.typ.Size()) }

// readFrame reads a frame without what follows it; buf has room for it.
func readFrame(r io.Reader, buf []byte, f *frame) error {
	if _, err := io.ReadFull(r, buf[:frameBytes]); err != nil {
		return err
	}
	return f.decode(buf)
}
