package event

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// What an event is to the rank that reports it, the rank at fault, and a third.
func TestEventFault(t *testing.T) {
	cause := errors.New("disk full")
	theirs := call.Record{Place: 7, Count: 3, Kind: call.Broadcast, Root: 1}
	for _, tc := range []struct {
		name   string
		e      Event
		me     int
		peer   int
		theirs *call.Record
	}{
		{"mismatch, to the one named", Event{Code: uint8(call.Mismatch), Peer: 2, From: 0, Call: theirs}, 2, 0, &theirs},
		{"mismatch, to a third", Event{Code: uint8(call.Mismatch), Peer: 2, From: 0, Call: theirs}, 1, 2, nil},
		{"aborted", Event{Code: uint8(call.Aborted), Peer: 3, From: 3}, 0, 3, nil},
		{"canceled", Event{Code: uint8(call.Canceled), Peer: 3, From: 1}, 0, 3, nil},
		{"timed out", Event{Code: uint8(call.Timeout), Peer: 2, From: 3}, 0, 2, nil},
		{"lost", Event{Code: uint8(call.RankLost), Peer: 2, From: -1}, 0, 2, nil},
		{"lost for certain", Event{Code: uint8(call.RankLost), Peer: 2, From: -1, Loss: Certain}, 0, 2, nil},
		{"closed", Event{Code: uint8(call.Closed), Peer: 2, From: 3}, 0, 2, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := tc.e.Fault(tc.me, func(*call.Record) bool { return false })
			assert.Equal(t, &call.Fault{Code: call.Code(tc.e.Code), Peer: tc.peer, Theirs: tc.theirs, Certain: tc.e.Loss == Certain}, f)
		})
	}
	e := New(1, call.Aborted, 3, 3, 0, cause)
	assert.EqualError(t, e.Fault(0, nil).Err, "disk full")
}

// A long cause is cut, none is none.
func TestEventCause(t *testing.T) {
	long := New(1, call.Aborted, 0, 0, 0, errors.New(strings.Repeat("x", 500)))
	assert.EqualError(t, long.Cause(), strings.Repeat("x", len(long.Text)))
	runes := New(1, call.Aborted, 0, 0, 0, errors.New(strings.Repeat("é", 100)))
	assert.EqualError(t, runes.Cause(), strings.Repeat("é", len(long.Text)/2), "no half of one")
	escapes := New(1, call.Aborted, 0, 0, 0, errors.New("a\x1b[2J\nb"))
	assert.EqualError(t, escapes.Cause(), `a\x1b[2J\nb`)
	none := New(1, call.Aborted, 0, 0, 0, nil)
	assert.NoError(t, none.Cause())
	none.Bytes = 200 // more than there is room for
	assert.NoError(t, none.Cause())
}

func TestEventLog(t *testing.T) {
	var l Log
	_, ok, gone := l.Read(0, nil)
	assert.False(t, ok)
	assert.False(t, gone)
	for i := range shm.RingSlots + 3 {
		e := New(uint64(i), call.Aborted, i, 0, 0, nil)
		l.Append(&e, 0, nil)
	}
	require.Equal(t, uint64(shm.RingSlots+3), l.Claimed())
	for i := range uint64(shm.RingSlots + 4) {
		e, ok, gone := l.Read(i, nil)
		switch {
		case i < 3: // overwritten
			assert.False(t, ok)
			assert.True(t, gone)
		case i == shm.RingSlots+3: // not there yet
			assert.False(t, ok)
			assert.False(t, gone)
		default:
			assert.True(t, ok)
			assert.False(t, gone)
			assert.Equal(t, i, e.Comm)
		}
	}
}

// Writers do not lose each other's events.
func TestEventLogOfManyWriters(t *testing.T) {
	var l Log
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range shm.RingSlots / 4 {
				e := New(uint64(w*shm.RingSlots/4+i+1), call.Aborted, w, w, 0, nil)
				l.Append(&e, 0, nil)
			}
		})
	}
	wg.Wait()
	seen := map[uint64]bool{}
	for i := range uint64(shm.RingSlots) {
		e, ok, _ := l.Read(i, nil)
		require.True(t, ok)
		seen[e.Comm] = true
	}
	assert.Len(t, seen, shm.RingSlots)
}
