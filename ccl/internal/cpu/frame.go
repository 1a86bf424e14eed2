package cpu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// A frame is a length (of the whole, little-endian, 2 bytes), a kind, a version, and
// a body.
const (
	frameBeat   = 1 // I am alive
	frameEvent  = 2 // an event
	frameBye    = 3 // I leave in good order
	frameStatus = 4 // where a rank stands

	frameHead    = 4
	frameVersion = 5
	frameMax     = frameHead + max(eventWire, statusWire)
)

// readFrame reads one frame. buf holds at least frameMax bytes, and the body after.
func readFrame(r io.Reader, buf []byte) (kind byte, body []byte, err error) {
	if _, err = io.ReadFull(r, buf[:frameHead]); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint16(buf))
	kind = buf[2]
	if n < frameHead || n > frameMax || buf[3] != frameVersion {
		return 0, nil, fmt.Errorf("control: a frame of kind %d, version %d and %d bytes makes no sense", kind, buf[3], n)
	}
	body = buf[frameHead:n]
	_, err = io.ReadFull(r, body)
	return kind, body, err
}

// eventWire is the size of an encoded event.
const eventWire = 8 + 6*4 + 3 + 97 + 2*numberedWire

func (e *event) encode(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b, e.Comm)
	for i, v := range []int32{e.Peer, e.From, e.Node, e.Origin, int32(e.Number), e.Size} {
		le.PutUint32(b[8+4*i:], uint32(v))
	}
	b[32], b[33], b[34] = e.Code, byte(e.Stage), e.Bytes
	copy(b[35:132], e.Text[:])
	e.Call.encodeNumbered(b[132:])
	e.Theirs.encodeNumbered(b[132+numberedWire:])
	return b[:eventWire]
}

func (e *event) decode(b []byte) error {
	if len(b) != eventWire {
		return fmt.Errorf("control: an event of %d bytes; %d are expected", len(b), eventWire)
	}
	le := binary.LittleEndian
	e.Comm = le.Uint64(b)
	for i, p := range []*int32{&e.Peer, &e.From, &e.Node, &e.Origin} {
		*p = int32(le.Uint32(b[8+4*i:]))
	}
	e.Number, e.Size = le.Uint32(b[24:]), int32(le.Uint32(b[28:]))
	e.Code, e.Stage, e.Bytes = b[32], stage(b[33]), b[34]
	copy(e.Text[:], b[35:132])
	e.Call.decodeNumbered(b[132:])
	e.Theirs.decodeNumbered(b[132+numberedWire:])
	if int(e.Bytes) > len(e.Text) || e.Code == 0 || Code(e.Code) >= codeEnd || e.Stage > decided || e.Size < 0 {
		return errors.New("control: an event that makes no sense")
	}
	return nil
}

// recordWire is the size of an encoded record: what is compared of it.
const recordWire = 8 + 8 + 4 + 4 + 4

func (r *Record) encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b[0:], r.Seq)
	le.PutUint64(b[8:], r.Count)
	le.PutUint32(b[16:], uint32(r.Root))
	le.PutUint32(b[20:], r.Hash)
	b[24], b[25], b[26], b[27] = byte(r.Kind), r.Type, r.Op, r.State
}

func (r *Record) decode(b []byte) {
	le := binary.LittleEndian
	r.Seq, r.Count = le.Uint64(b[0:]), le.Uint64(b[8:])
	r.Root, r.Hash = int32(le.Uint32(b[16:])), le.Uint32(b[20:])
	r.Kind, r.Type, r.Op, r.State = Kind(b[24]), b[25], b[26], b[27]
}

// numberedWire is the size of a record with its number and factor.
const numberedWire = recordWire + 8 + 4

func (r *Record) encodeNumbered(b []byte) {
	r.encode(b)
	binary.LittleEndian.PutUint64(b[recordWire:], r.Number)
	binary.LittleEndian.PutUint32(b[recordWire+8:], math.Float32bits(r.Times))
}

func (r *Record) decodeNumbered(b []byte) {
	r.decode(b)
	r.Number = binary.LittleEndian.Uint64(b[recordWire:])
	r.Times = math.Float32frombits(binary.LittleEndian.Uint32(b[recordWire+8:]))
}
