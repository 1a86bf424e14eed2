package control

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// A frame is a length (of the whole, little-endian, 2 bytes), a kind, a version, and
// a body.
// The kinds of frames, and their sizes.
const (
	FrameBeat   = 1 // I am alive
	FrameEvent  = 2 // an event
	FrameBye    = 3 // I leave in good order
	FrameStatus = 4 // where a rank stands

	FrameHead    = 4
	FrameVersion = 9
	FrameMax     = FrameHead + max(event.Wire, status.Wire)
)

// ReadFrame reads one frame. buf holds at least FrameMax bytes, and the body after.
func ReadFrame(r io.Reader, buf []byte) (kind byte, body []byte, err error) {
	if _, err = io.ReadFull(r, buf[:FrameHead]); err != nil {
		return 0, nil, err
	}
	n := int(binary.LittleEndian.Uint16(buf))
	kind = buf[2]
	if n < FrameHead || n > FrameMax || buf[3] != FrameVersion {
		return 0, nil, fmt.Errorf("control: a frame of kind %d, version %d and %d bytes makes no sense", kind, buf[3], n)
	}
	body = buf[FrameHead:n]
	_, err = io.ReadFull(r, body)
	return kind, body, err
}
