package event

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
)

// anEvent has something in every field.
func anEvent() Event {
	e := New(0x1122334455667788, call.Mismatch, 5, 3, 2, errors.New("enough"))
	e.Origin, e.Number, e.Size, e.Stage, e.Loss = 1, 9, 7, Decided, Certain
	e.Theirs = call.Record{Place: 41, Count: 1025, Root: -1, Hash: 0xbeef, Kind: call.AllReduce, Type: 11, Op: 2, State: 1}
	e.Call = call.Record{Place: 41, Count: 1024, Root: -1, Hash: 0xcafe, Kind: call.AllReduce, Type: 11, Op: 2, State: 1}
	e.SetMissing([]int{4, 6})
	return e
}

func TestEventWire(t *testing.T) {
	e := anEvent()
	var b [Wire]byte
	require.Len(t, e.Encode(b[:]), Wire)
	assert.Equal(t, 282, Wire)
	assert.Equal(t, []byte{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 5, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, byte(call.Mismatch), byte(Decided), 6, 2, 2}, b[:41])
	assert.Equal(t, "enough", string(b[41:47]))
	assert.Equal(t, []byte{41, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xca, 0, 0, byte(call.AllReduce), 11, 2, 1}, b[202:230])
	var back Event
	require.NoError(t, back.Decode(b[:]))
	assert.Equal(t, e, back)
}

func TestEventThatMakesNoSense(t *testing.T) {
	for _, tc := range []struct {
		name string
		do   func(b []byte) []byte
	}{
		{"empty", func([]byte) []byte { return nil }},
		{"short", func(b []byte) []byte { return b[:Wire-1] }},
		{"long", func(b []byte) []byte { return append(b, 0) }},
		{"no code", func(b []byte) []byte { b[36] = 0; return b }},
		{"a code beyond", func(b []byte) []byte { b[36] = byte(codeEnd); return b }},
		{"too much text", func(b []byte) []byte { b[38] = 98; return b }},
		{"a negative size", func(b []byte) []byte { b[35] = 0x80; return b }},
		{"too many late", func(b []byte) []byte { b[40] = MissingMost + 1; return b }},
		{"a late rank that is none", func(b []byte) []byte { b[141] = 0x80; return b }},
		{"a loss beyond", func(b []byte) []byte { b[39] = byte(lossEnd); return b }},
		{"a stage beyond", func(b []byte) []byte { b[37] = byte(Decided) + 1; return b }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := anEvent()
			b := tc.do(e.Encode(make([]byte, Wire)))
			var back Event
			assert.Error(t, back.Decode(b))
		})
	}
}
