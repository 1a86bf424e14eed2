package links

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/environ"
)

// HeadBytes is the size of what precedes each message:
//
//	0 magic 4 | 4 CRC32C of the rest 4 | 8 Comm 8 | 16 payload bytes 8 | 24 step 4 |
//	28 kind of message 1 | 29 whether there is a checksum 1 | 30 of how many operands the
//	payload is the share, 16 bits, and 7 more at 29 | 32 CRC32C of the payload 4 | 36 over how many lanes it is
//	spread, 0 if it is not | 37 which of them this is | 38 nothing 2 |
//	40 the sender's record (RecordWire) | 80 that of the collective before it (RecordWire)
const (
	HeadBytes = beforeAt + call.RecordWire
	sumAt     = 32
	lanesAt   = 36
	recordAt  = 40
	beforeAt  = recordAt + call.RecordWire
	headMagic = 0x6c63_6347 // "Gccl"

	messageData   = 1
	messageBye    = 2 // the sender closes the Comm
	messageFailed = 3 // the same after a failure: its code is step, the rank at fault the record's root
)

var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// head is the header of one message, as sent and as expected.
type head struct {
	comm   uint64
	bytes  uint64
	step   uint32
	kind   byte
	summed bool
	sum    uint32 // of the payload, if summed
	lanes  uint8  // over which the message is spread; 0 if it is not
	lane   uint8  // the one of this share
	shares int32  // of how many operands the payload is the share, in a call that Weighs: less than 1<<23
	record call.Record
	before call.Record
}

// checksums says that payloads between hosts carry a CRC32C, for networks that are not to
// be trusted: TCP's own checksum misses one in 65,536 errors. It is asked when the first message is
// sent, since a program of C's may set the variable after it has loaded this.
var checksums = sync.OnceValue(environ.Checksum.Get)

func (h *head) encode(b []byte) {
	le := binary.LittleEndian
	le.PutUint32(b, headMagic)
	le.PutUint64(b[8:], h.comm)
	le.PutUint64(b[16:], h.bytes)
	le.PutUint32(b[24:], h.step)
	b[28], b[29] = h.kind, byte(h.shares>>16)<<1
	if h.summed {
		b[29] |= 1
	}
	le.PutUint16(b[30:], uint16(h.shares))
	le.PutUint32(b[sumAt:], h.sum)
	b[lanesAt], b[lanesAt+1] = h.lanes, h.lane
	clear(b[lanesAt+2 : recordAt])
	h.record.Encode(b[recordAt:])
	h.before.Encode(b[beforeAt:])
	le.PutUint32(b[4:], crc32.Checksum(b[8:HeadBytes], Castagnoli))
}

func (h *head) decode(b []byte) error {
	if len(b) != HeadBytes {
		return fmt.Errorf("a message header has %d bytes, not %d", HeadBytes, len(b))
	}
	le := binary.LittleEndian
	if le.Uint32(b) != headMagic || le.Uint32(b[4:]) != crc32.Checksum(b[8:], Castagnoli) {
		return errors.New("a message header is damaged")
	}
	h.comm, h.bytes, h.step, h.kind = le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint32(b[24:]), b[28]
	h.record.Decode(b[recordAt:])
	h.before.Decode(b[beforeAt:])
	h.summed, h.sum = b[29]&1 == 1, le.Uint32(b[sumAt:])
	h.shares = int32(b[29])>>1<<16 | int32(le.Uint16(b[30:]))
	if h.lanes, h.lane = b[lanesAt], b[lanesAt+1]; !validLanes(h.lanes, h.lane, h.bytes) {
		return errors.New("a message header says lanes that cannot be")
	}
	return nil
}

// validLanes reports whether a header can say so of a message of so many bytes.
func validLanes(lanes, lane uint8, bytes uint64) bool {
	return lanes == 0 && lane == 0 || lanes > 1 && lanes <= lanesMost && lane < lanes && bytes/laneLeast >= uint64(lanes)
}
