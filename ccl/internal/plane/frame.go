package plane

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/status"
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
	frameMax     = frameHead + max(eventWire, status.StatusWire)
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
const eventWire = 8 + 6*4 + 3 + 97 + 2*call.NumberedWire

func (e *Event) encode(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b, e.Comm)
	for i, v := range []int32{e.Peer, e.From, e.Node, e.Origin, int32(e.Number), e.Size} {
		le.PutUint32(b[8+4*i:], uint32(v))
	}
	b[32], b[33], b[34] = e.Code, byte(e.Stage), e.Bytes
	copy(b[35:132], e.Text[:])
	e.Call.EncodeNumbered(b[132:])
	e.Theirs.EncodeNumbered(b[132+call.NumberedWire:])
	return b[:eventWire]
}

func (e *Event) decode(b []byte) error {
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
	e.Call.DecodeNumbered(b[132:])
	e.Theirs.DecodeNumbered(b[132+call.NumberedWire:])
	if int(e.Bytes) > len(e.Text) || e.Code == 0 || call.Code(e.Code) >= codeEnd || e.Stage > decided || e.Size < 0 {
		return errors.New("control: an event that makes no sense")
	}
	return nil
}
