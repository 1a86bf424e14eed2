package status

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
)

// aStatus has something in every field.
func aStatus() Status {
	s := Status{Comm: 0x1122334455667788, Calls: 41, Rank: 3, Size: 8, World: 7, Node: 2, Peer: 5, To: 2, For: 6, Number: 9, Waited: 1500, Hash: 0xcafe,
		Doing: Waits, Failed: true, Report: true, Several: true, Call: call.Record{Place: 41, Count: 1024, Root: -1, Hash: 0xcafe, Seq: 43, Kind: call.AllReduce, Type: 11, Op: 2, State: 1, Times: 0.25}}
	s.name.set("tp")
	s.host.set("n1")
	s.caller.set("train.go:88")
	return s
}

func TestStatusWire(t *testing.T) {
	s := aStatus()
	var b [Wire]byte
	require.Len(t, s.Encode(b[:]), 200)
	var back Status
	require.NoError(t, back.Decode(b[:]))
	assert.Equal(t, s, back)
	assert.Equal(t, "tp n1 train.go:88", back.Name()+" "+back.Host()+" "+back.Caller())
	s.name.set(strings.Repeat("x", 100))
	s.caller.set(strings.Repeat("y", 100))
	assert.Equal(t, strings.Repeat("x", 23), s.Name())
	assert.Equal(t, strings.Repeat("y", 47), s.Caller())
}

func TestStatusThatMakesNoSense(t *testing.T) {
	for name, spoil := range map[string]func(b []byte) []byte{
		"short":            func(b []byte) []byte { return b[:Wire-1] },
		"long":             func(b []byte) []byte { return append(b, 0) },
		"a rank beyond":    func(b []byte) []byte { b[16] = 8; return b },
		"a negative rank":  func(b []byte) []byte { b[19] = 0x80; return b },
		"a negative world": func(b []byte) []byte { b[27] = 0x80; return b },
		"a peer beyond":    func(b []byte) []byte { b[32] = 8; return b },
		"doing what":       func(b []byte) []byte { b[56] = 3; return b },
		"for whom":         func(b []byte) []byte { b[39] = 0x80; return b },
		"sends beyond":     func(b []byte) []byte { b[Wire-4] = 8; return b },
		"several of what":  func(b []byte) []byte { b[59] = 2; return b },
		"a long name":      func(b []byte) []byte { b[60+call.RecordWire] = 24; return b },
		"a long caller":    func(b []byte) []byte { b[60+call.RecordWire+48] = 48; return b },
	} {
		t.Run(name, func(t *testing.T) {
			s := aStatus()
			var back Status
			assert.Error(t, back.Decode(spoil(s.Encode(make([]byte, Wire)))))
		})
	}
}

func FuzzStatus(f *testing.F) {
	s := aStatus()
	f.Add(s.Encode(make([]byte, Wire)))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var s Status
		if s.Decode(in) != nil {
			return
		}
		again := s.Encode(make([]byte, Wire))
		if !bytes.Equal(again, in) {
			t.Fatalf("%x was read as %+v, which is %x", in, s, again)
		}
		Circle([]Status{s, aStatus()})
		s.StillWaits(0, 0)
	})
}

// Texts of other ranks are shown without control characters, and without half a rune at their end.
func TestTextsArePlain(t *testing.T) {
	var s Status
	s.SetName("tp\x1b[2J")
	s.SetHost("h\n1")
	s.SetCaller(strings.Repeat("é", 100))
	assert.Equal(t, []string{`tp\x1b[2J`, `h\n1`, strings.Repeat("é", len(s.caller.b)/2)}, []string{s.Name(), s.Host(), s.Caller()})
}
