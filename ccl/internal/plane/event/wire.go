package event

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/inject"
)

// Wire is the size of an encoded event.
const Wire = callAt + 2*call.RecordWire

const (
	textAt    = 8 + 4*4 + 8 + 4 + 5
	missingAt = textAt + 97
	callAt    = missingAt + 4*MissingMost
)

// Encode writes e to b, which it returns as far as it is written.
func (e *Event) Encode(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b, e.Comm)
	for i, v := range []int32{e.Peer, e.From, e.Node, e.Origin} {
		le.PutUint32(b[8+4*i:], uint32(v))
	}
	le.PutUint64(b[24:], e.Number)
	le.PutUint32(b[32:], uint32(e.Size))
	b[36], b[37], b[38], b[39] = e.Code, byte(e.Stage), e.Bytes, byte(e.Loss)
	b[40] = e.Missing.n
	copy(b[textAt:missingAt], e.Text[:])
	for i, r := range e.Missing.list {
		le.PutUint32(b[missingAt+4*i:], uint32(r))
	}
	e.Call.Encode(b[callAt:])
	e.Theirs.Encode(b[callAt+call.RecordWire:])
	return b[:Wire]
}

// Decode reads what Encode wrote. It comes from another host: what makes no sense is an error.
func (e *Event) Decode(b []byte) error {
	if len(b) != Wire {
		return fmt.Errorf("control: an event of %d bytes; %d are expected", len(b), Wire)
	}
	le := binary.LittleEndian
	e.Comm = le.Uint64(b)
	for i, p := range []*int32{&e.Peer, &e.From, &e.Node, &e.Origin} {
		*p = int32(le.Uint32(b[8+4*i:]))
	}
	e.Number, e.Size = le.Uint64(b[24:]), int32(le.Uint32(b[32:]))
	e.Code, e.Stage, e.Bytes, e.Loss = b[36], Stage(b[37]), b[38], Loss(b[39])
	e.Missing.n = b[40]
	if inject.Wrong("event.decode") {
		e.Missing.n = 0
	}
	copy(e.Text[:], b[textAt:missingAt])
	for i := range e.Missing.list {
		e.Missing.list[i] = int32(le.Uint32(b[missingAt+4*i:]))
	}
	e.Call.Decode(b[callAt:])
	e.Theirs.Decode(b[callAt+call.RecordWire:])
	for _, r := range e.Missing.ints() {
		if r < 0 {
			return errors.New("control: an event that names no rank")
		}
	}
	if int(e.Bytes) > len(e.Text) || e.Code == 0 || call.Code(e.Code) >= codeEnd || e.Stage > Decided ||
		e.Loss >= lossEnd || b[40] > MissingMost || e.Size < 0 {
		return errors.New("control: an event that makes no sense")
	}
	return nil
}
