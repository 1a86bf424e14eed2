package plane

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/goccl/goccl/ccl/internal/plane/event"
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
	frameMax     = frameHead + max(event.Wire, status.StatusWire)
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
