package control

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// someEvent is one that a frame carries.
func someEvent() event.Event {
	e := event.New(0x1122334455667788, call.Mismatch, 5, 3, 2, errors.New("enough"))
	e.Origin, e.Number, e.Size = 1, 9, 7
	e.Call = call.Record{Place: 41, Count: 1024, Root: -1, Hash: 0xcafe, Kind: call.AllReduce, Type: 11, Op: 2, State: 1}
	return e
}

func frameOf(kind, version byte, body []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(FrameHead+len(body)))
	return append(append(b, kind, version), body...)
}

func TestReadFrame(t *testing.T) {
	e := someEvent()
	event := e.Encode(make([]byte, event.Wire))
	for _, tc := range []struct {
		name string
		in   []byte
		kind byte
		body []byte
		want string // of the error
	}{
		{"beat", frameOf(FrameBeat, FrameVersion, nil), FrameBeat, []byte{}, ""},
		{"bye", frameOf(FrameBye, FrameVersion, nil), FrameBye, []byte{}, ""},
		{"event", frameOf(FrameEvent, FrameVersion, event), FrameEvent, event, ""},
		{"unknown kind", frameOf(77, FrameVersion, []byte{1, 2, 3}), 77, []byte{1, 2, 3}, ""}, // for a later version to use
		{"end", nil, 0, nil, "EOF"},
		{"end in the head", []byte{4, 0}, 0, nil, "unexpected EOF"},
		{"end in the body", frameOf(FrameEvent, FrameVersion, event)[:20], 0, nil, "unexpected EOF"},
		{"too short", []byte{3, 0, FrameBeat, FrameVersion}, 0, nil, "a frame of kind 1, version 9 and 3 bytes makes no sense"},
		{"too long", frameOf(FrameBeat, FrameVersion, make([]byte, FrameMax-FrameHead+1)), 0, nil, "a frame of kind 1, version 9 and 287 bytes makes no sense"},
		{"other version", frameOf(FrameBeat, 1, nil), 0, nil, "a frame of kind 1, version 1 and 4 bytes makes no sense"},
		{"something else", []byte("GET / HTTP/1.1\r\n"), 0, nil, "a frame of kind 84, version 32 and 17735 bytes makes no sense"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kind, body, err := ReadFrame(bytes.NewReader(tc.in), make([]byte, FrameMax))
			if tc.want != "" {
				assert.ErrorContains(t, err, tc.want)
				return
			}
			assert.NoError(t, err)
			assert.Equal(t, tc.kind, kind)
			assert.Equal(t, tc.body, body)
		})
	}
}

func FuzzFrame(f *testing.F) {
	e := someEvent()
	body := e.Encode(make([]byte, event.Wire))
	f.Add(frameOf(FrameBeat, FrameVersion, nil))
	f.Add(frameOf(FrameEvent, FrameVersion, body))
	f.Add(append(frameOf(FrameEvent, FrameVersion, body), frameOf(FrameBye, FrameVersion, nil)...))
	f.Add(frameOf(FrameEvent, FrameVersion, body[:7]))
	st := status.Status{Comm: 8, Calls: 41, Rank: 3, Size: 8, World: 7, Peer: 5, For: 6, Doing: status.Waits}
	f.Add(frameOf(FrameStatus, FrameVersion, st.Encode(make([]byte, status.Wire))))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		buf := make([]byte, FrameMax)
		for {
			before := r.Len()
			kind, body, err := ReadFrame(r, buf)
			if err != nil {
				return
			}
			if n := before - r.Len(); n < FrameHead || n > FrameMax || n != FrameHead+len(body) {
				t.Fatalf("a frame of %d bytes, %d of them its body", n, len(body))
			}
			var e event.Event
			if kind != FrameEvent || e.Decode(body) != nil {
				continue
			}
			if again := e.Encode(make([]byte, event.Wire)); !bytes.Equal(again, body) {
				t.Fatalf("%x was read as %+v, which is %x", body, e, again)
			}
			for me := range 3 { // every rank can make something of it
				if e.Fault(me, func(*call.Record) bool { return true }).Code == 0 {
					t.Fatal("a fault without a code")
				}
			}
		}
	})
}

// The bytes of a version do not change: who changes what a frame means, a value of a byte among it, gives FrameVersion a new number,
// and this test the new bytes.
func TestBytesOfTheVersion(t *testing.T) {
	e := someEvent()
	e.Loss = event.Certain
	e.SetMissing([]int{3, 4})
	st := status.Status{Comm: 8, Calls: 41, Rank: 3, Size: 8, World: 7, Node: 2, Peer: 5, To: -1, For: 6, Number: 9, Waited: 10, Hash: 11, Doing: status.Waits, Failed: true, Report: true}
	sum := crc32.ChecksumIEEE(append(e.Encode(make([]byte, event.Wire)), st.Encode(make([]byte, status.Wire))...))
	assert.Equal(t, []any{9, 920723196, event.Certain}, []any{FrameVersion, int(sum), event.Loss(2)})
}
