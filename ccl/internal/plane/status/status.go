package status

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/plain"
)

// Status says where one rank stands in one Comm. Ranks tell each other only once a call has waited for
// long.
type Status struct {
	Comm    uint64
	Calls   uint64 // collectives it has begun
	Rank    int32  // of Size
	Size    int32
	World   int32  // its rank in the world
	Node    int32  // its host
	Peer    int32  // the rank that it waits for; -1: several, or none
	To      int32  // the rank that its SendRecv sends to; -1: it is in no SendRecv
	For     int32  // if it waits, a rank of the world that has not come; -1: not known
	Waited  uint32 // milliseconds
	Hash    uint32 // of all collectives it has begun
	Number  uint64 // by which a status that comes again is known: see control.Flood
	Doing   Doing
	Several bool        // its call is one of several messages, of which Call is the first
	Brief   bool        // sent for its order of calls alone, one for all ranks of a host
	Failed  bool        // the Comm has failed
	Report  bool        // only the host that reports where all ranks stood is to hear it
	Call    call.Record // the call it is in, or was in last
	name    short
	caller  long
	host    short
	heard   int64 // when this process has heard it
}

// Doing is what a rank does.
type Doing uint8

// What a rank may be found doing.
const (
	Outside Doing = iota // it is in no call: Call is its last
	AtWork               // it is in Call, and not found to wait
	Waits                // it waits in Call
)

// short and long are texts of a bounded length, so that a Status can lie in shared memory.
type (
	short struct {
		n uint8
		b [23]byte
	}
	long struct {
		n uint8
		b [47]byte
	}
)

func (t *short) set(s string) { t.n = uint8(copy(t.b[:], s)) }
func (t *long) set(s string)  { t.n = uint8(copy(t.b[:], s)) }

func (t short) String() string { return shown(t.b[:min(int(t.n), len(t.b))]) }
func (t long) String() string  { return shown(t.b[:min(int(t.n), len(t.b))]) }

// shown is a text that another rank has sent; its last rune may have been cut.
func shown(b []byte) string { return plain.Text(strings.ToValidUTF8(string(b), "")) }

// Name is the Comm's name there.
func (s *Status) Name() string { return s.name.String() }

// Caller is where the call was made, "" if that is not known.
func (s *Status) Caller() string { return s.caller.String() }

// SetName notes what the Comm is called. It is cut where there is no room for it, as the other texts are.
func (s *Status) SetName(name string) { s.name.set(name) }

// SetCaller notes where the call was made.
func (s *Status) SetCaller(caller string) { s.caller.set(caller) }

// SetHost notes the name of the rank's host.
func (s *Status) SetHost(host string) { s.host.set(host) }

// Host is the name of the rank's host.
func (s *Status) Host() string { return s.host.String() }

// Wire is the size of an encoded Status.
const Wire = 2*8 + 8*4 + 8 + 4 + call.RecordWire + 2*24 + 48 + 4

// Encode writes s to b, which it returns as far as it is written.
func (s *Status) Encode(b []byte) []byte {
	le := binary.LittleEndian
	le.PutUint64(b, s.Comm)
	le.PutUint64(b[8:], s.Calls)
	for i, v := range []uint32{uint32(s.Rank), uint32(s.Size), uint32(s.World), uint32(s.Node), uint32(s.Peer),
		uint32(s.For), s.Waited, s.Hash} {
		le.PutUint32(b[16+4*i:], v)
	}
	le.PutUint64(b[48:], s.Number)
	b[56], b[57], b[58], b[59] = byte(s.Doing), flag(s.Brief), flag(s.Failed)|flag(s.Report)<<1, flag(s.Several)
	s.Call.Encode(b[60:])
	at := 60 + call.RecordWire
	b[at], b[at+24], b[at+48] = s.name.n, s.host.n, s.caller.n
	copy(b[at+1:], s.name.b[:])
	copy(b[at+25:], s.host.b[:])
	copy(b[at+49:], s.caller.b[:])
	le.PutUint32(b[Wire-4:], uint32(s.To))
	return b[:Wire]
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// Decode reads what Encode wrote. It comes from another host: what makes no sense is an error.
func (s *Status) Decode(b []byte) error {
	if len(b) != Wire {
		return fmt.Errorf("control: a status of %d bytes; %d are expected", len(b), Wire)
	}
	le := binary.LittleEndian
	s.Comm, s.Calls = le.Uint64(b), le.Uint64(b[8:])
	for i, p := range []*int32{&s.Rank, &s.Size, &s.World, &s.Node, &s.Peer, &s.For} {
		*p = int32(le.Uint32(b[16+4*i:]))
	}
	s.Waited, s.Hash, s.Number = le.Uint32(b[40:]), le.Uint32(b[44:]), le.Uint64(b[48:])
	s.Doing, s.Brief, s.Failed, s.Report, s.Several = Doing(b[56]), b[57] == 1, b[58]&1 != 0, b[58]&2 != 0, b[59] == 1
	s.To = int32(le.Uint32(b[Wire-4:]))
	s.Call.Decode(b[60:])
	at := 60 + call.RecordWire
	s.name.n, s.host.n, s.caller.n = b[at], b[at+24], b[at+48]
	copy(s.name.b[:], b[at+1:])
	copy(s.host.b[:], b[at+25:])
	copy(s.caller.b[:], b[at+49:])
	if s.Doing > Waits || b[57] > 1 || b[58] > 3 || b[59] > 1 || s.To < -1 || s.To >= s.Size || s.Rank < 0 ||
		s.Rank >= s.Size || s.World < 0 || s.Peer < -1 || s.Peer >= s.Size || s.For < -1 ||
		int(s.name.n) > len(s.name.b) || int(s.host.n) > len(s.host.b) || int(s.caller.n) > len(s.caller.b) {
		return errors.New("control: a status that makes no sense")
	}
	return nil
}

// Log hands statuses to the processes of a host, as event.Log does events. A status that is overwritten
// before all have read it is lost; its rank repeats it while it matters.
type Log = shm.Ring[Status]
