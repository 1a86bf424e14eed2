package boot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/goccl/goccl/internal/plain"
)

// After the handshake both directions of a connection carry frames:
//
//	kind 1, rank 4, length 4, payload
//
// Numbers are big-endian. Up, towards rank 0, go join, value, leave, ack and watch; down
// go verdict and table. Each connection confirms a frame that came down it by an ack, so a server
// knows when the others need it no more.
const (
	frameJoin    byte = iota + 1 // up: I am here; a join
	frameValue                   // up: my value for this round; milliseconds left 4, value
	frameLeave                   // up: I give up, or was lost; a verdict
	frameAck                     // up: I have read what you sent
	frameVerdict                 // down: how the joining ended, or that the job has failed; a verdict
	frameTable                   // down: all values of this round; a table
	frameWatch                   // up: I need all ranks before the next round; if one is gone, tell me now
)

const (
	frameHead = 9
	valueHead = 4
	// MaxValue is the most bytes that one rank can give to an AllGather.
	MaxValue = 64 << 10
	// maxUp bounds a frame towards rank 0.
	maxUp = valueHead + MaxValue
	// maxVerdict bounds a verdict: it may list every rank there is.
	maxVerdict = 1 << 20
)

// protocol is the version of the frames; it changes with any of them.
const protocol = 3

type frame struct {
	kind byte
	rank int
	data []byte
}

var errFrame = errors.New("malformed frame")

// encode returns f as it goes over the wire.
func (f frame) encode() []byte { return f.append(make([]byte, 0, frameHead+len(f.data))) }

// append is encode, at the end of b.
func (f frame) append(b []byte) []byte {
	b = append(b, f.kind)
	b = binary.BigEndian.AppendUint32(b, uint32(f.rank))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.data)))
	return append(b, f.data...)
}

// readFrame reads one frame of at most limit bytes of payload. What is allocated
// grows with what has arrived, never with what the length alone claims.
func readFrame(r io.Reader, limit int) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: head[0], rank: int(int32(binary.BigEndian.Uint32(head[1:])))}
	n := int64(binary.BigEndian.Uint32(head[5:]))
	switch {
	case f.kind < frameJoin || f.kind > frameWatch || f.rank < 0:
		return frame{}, errFrame
	case n > int64(limit):
		return frame{}, fmt.Errorf("%w: %d bytes; at most %d are allowed", errFrame, n, limit)
	case n <= MaxValue:
		f.data = make([]byte, n)
		_, err := io.ReadFull(r, f.data)
		return f, noEOF(err)
	}
	data, err := readBytes(r, n)
	f.data = data
	return f, err
}

// noEOF tells an end within a frame from an end between two.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// join is what a rank says about itself, as hello of the handshake and in its join frame.
type join struct {
	Protocol int    `json:"v"`
	Rank     int    `json:"rank"`
	Size     int    `json:"size"`
	Left     uint32 `json:"left,omitempty"` // milliseconds until this rank gives up; 0: never
	PID      int    `json:"pid"`
	Host     string `json:"host"`

	// In a handshake alone, see tree.
	Door   uint16 `json:"door,omitempty"`   // of a relay: the port at which it takes others
	Astray bool   `json:"astray,omitempty"` // it did not reach the relay to which it was sent
	To     *way   `json:"to,omitempty"`     // of a server: who takes the newcomer in its place
}

func (j join) String() string { return fmt.Sprintf("host %s, pid %d", j.Host, j.PID) }

func parseJoin(data []byte) (join, error) {
	var j join
	if err := plain.Unmarshal(data, &j); err != nil {
		return join{}, fmt.Errorf("%w: %v", errFrame, err)
	}
	if j.Rank < 0 || j.Size < 1 || int(int32(j.Rank)) != j.Rank {
		return join{}, errFrame
	}
	j.Host = hostName(j.Host)
	if j.To != nil {
		if j.To.Rank < 0 || int(int32(j.To.Rank)) != j.To.Rank || !j.To.Addr.IsValid() {
			return join{}, errFrame
		}
		j.To.Host = hostName(j.To.Host)
	}
	return j, nil
}

// hostName is s, as long as a host name can be at most.
func hostName(s string) string { return s[:min(len(s), 255)] }

// verdict ends the joining, on all ranks alike, or a round that failed; Code 0 is success.
type verdict struct {
	Code    Code       `json:"code,omitempty"`
	Peer    int        `json:"peer"`
	Missing []int      `json:"missing,omitempty"`
	Text    string     `json:"text,omitempty"`
	Addr    netip.Addr `json:"addr,omitzero"`    // see Boot.Addr
	Secret  []byte     `json:"secret,omitempty"` // only ever over a socket within one host
	// Taken is how many of the joins sent over this connection the success is about: one
	// that crossed it on the way, for a job complete without it, has to try again.
	Taken int `json:"taken,omitempty"`
}

func (v verdict) frame() []byte {
	data, err := json.Marshal(v)
	if err != nil || len(data) > maxVerdict {
		v.Missing, v.Secret = nil, nil
		data, _ = json.Marshal(v) // strings and numbers always can
	}
	return frame{kind: frameVerdict, data: data}.encode()
}

func parseVerdict(data []byte) (verdict, error) {
	v := verdict{Peer: -1}
	if err := plain.Unmarshal(data, &v); err != nil {
		return verdict{}, fmt.Errorf("%w: %v", errFrame, err)
	}
	return v, nil
}

// verdictOf says e to others.
func verdictOf(e *Error) verdict {
	return verdict{Code: e.Code, Peer: e.Peer, Missing: e.Missing, Text: e.Text}
}

// leaving is the frame by which a rank says why it gives up.
func leaving(rank int, e *Error) frame {
	return frame{kind: frameLeave, rank: rank, data: verdictOf(e).frame()[frameHead:]}
}

// error is v as an error that no rank has signed yet; nil for success.
func (v verdict) error() *Error {
	if v.Code == 0 {
		return nil
	}
	return &Error{Code: v.Code, Rank: -1, Size: -1, Peer: v.Peer, Missing: v.Missing, Text: v.Text}
}

// milliseconds is how a duration travels; 0 stands for no limit, so a limit is at least 1.
func milliseconds(d time.Duration) uint32 {
	return uint32(min(max(d.Milliseconds(), 1), 1<<32-1))
}

// readBytes reads n bytes.
func readBytes(r io.Reader, n int64) ([]byte, error) {
	var b bytes.Buffer
	_, err := io.CopyN(&b, r, n)
	return b.Bytes(), noEOF(err)
}
