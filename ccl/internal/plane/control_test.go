package plane

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
)

// someEvent is one that a frame carries.
func someEvent() event.Event {
	e := event.New(0x1122334455667788, call.Mismatch, 5, 3, 2, errors.New("enough"))
	e.Origin, e.Number, e.Size = 1, 9, 7
	e.Call = call.Record{Seq: 41, Count: 1024, Root: -1, Hash: 0xcafe, Kind: call.AllReduce, Type: 11, Op: 2, State: 1}
	return e
}

func frameOf(kind, version byte, body []byte) []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(frameHead+len(body)))
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
		{"beat", frameOf(frameBeat, frameVersion, nil), frameBeat, []byte{}, ""},
		{"bye", frameOf(frameBye, frameVersion, nil), frameBye, []byte{}, ""},
		{"event", frameOf(frameEvent, frameVersion, event), frameEvent, event, ""},
		{"unknown kind", frameOf(77, frameVersion, []byte{1, 2, 3}), 77, []byte{1, 2, 3}, ""}, // for a later version to use
		{"end", nil, 0, nil, "EOF"},
		{"end in the head", []byte{4, 0}, 0, nil, "unexpected EOF"},
		{"end in the body", frameOf(frameEvent, frameVersion, event)[:20], 0, nil, "unexpected EOF"},
		{"too short", []byte{3, 0, frameBeat, frameVersion}, 0, nil, "a frame of kind 1, version 5 and 3 bytes makes no sense"},
		{"too long", frameOf(frameBeat, frameVersion, make([]byte, frameMax-frameHead+1)), 0, nil, "a frame of kind 1, version 5 and 217 bytes makes no sense"},
		{"other version", frameOf(frameBeat, 1, nil), 0, nil, "a frame of kind 1, version 1 and 4 bytes makes no sense"},
		{"something else", []byte("GET / HTTP/1.1\r\n"), 0, nil, "a frame of kind 84, version 32 and 17735 bytes makes no sense"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kind, body, err := readFrame(bytes.NewReader(tc.in), make([]byte, frameMax))
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

// What send and bye write, readFrame reads, one frame after the other.
func TestSendFrames(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := &controlConn{Conn: a}
	e := someEvent()
	go func() {
		c.send(frameBeat, nil)
		c.send(frameEvent, &e)
		c.bye()
	}()
	buf := make([]byte, frameMax)
	for _, want := range []struct {
		kind byte
		body []byte
	}{{frameBeat, []byte{}}, {frameEvent, e.Encode(make([]byte, event.Wire))}, {frameBye, []byte{}}} {
		kind, body, err := readFrame(b, buf)
		require.NoError(t, err)
		assert.Equal(t, want.kind, kind)
		assert.Equal(t, want.body, body)
	}
	_, _, err := readFrame(b, buf)
	assert.ErrorIs(t, err, io.EOF)
}

func FuzzFrame(f *testing.F) {
	e := someEvent()
	body := e.Encode(make([]byte, event.Wire))
	f.Add(frameOf(frameBeat, frameVersion, nil))
	f.Add(frameOf(frameEvent, frameVersion, body))
	f.Add(append(frameOf(frameEvent, frameVersion, body), frameOf(frameBye, frameVersion, nil)...))
	f.Add(frameOf(frameEvent, frameVersion, body[:7]))
	st := status.Status{Comm: 8, Calls: 41, Rank: 3, Size: 8, World: 7, Peer: 5, For: 6, Doing: status.Waits}
	f.Add(frameOf(frameStatus, frameVersion, st.Encode(make([]byte, status.StatusWire))))
	f.Add([]byte("GET / HTTP/1.1\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		buf := make([]byte, frameMax)
		for {
			before := r.Len()
			kind, body, err := readFrame(r, buf)
			if err != nil {
				return
			}
			if n := before - r.Len(); n < frameHead || n > frameMax || n != frameHead+len(body) {
				t.Fatalf("a frame of %d bytes, %d of them its body", n, len(body))
			}
			var e event.Event
			if kind != frameEvent || e.Decode(body) != nil {
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

// A neighbor that reads nothing for a while gets every frame after that, whole and in order: what a deadline cuts off a
// frame must come before the next.
func TestSlowNeighborGetsWholeFrames(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s")) // TCP opens a window of this size slowly
	require.NoError(t, err)
	defer l.Close()
	there, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	defer there.Close()
	here, err := l.Accept()
	require.NoError(t, err)
	defer here.Close()
	require.NoError(t, here.(*net.UnixConn).SetWriteBuffer(4096))

	c := &controlConn{Conn: here}
	e := someEvent()
	sent := uint32(0)
	for len(c.unsent) < 10*frameMax {
		e.Number = sent
		sent++
		c.send(frameEvent, &e)
		c.send(frameBeat, nil)
	}
	done, stop := make(chan struct{}), atomic.Bool{}
	defer func() { stop.Store(true); <-done }()
	go func() {
		defer close(done)
		for ; !stop.Load(); time.Sleep(time.Millisecond) {
			c.flush()
		}
	}()
	there.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, frameMax)
	for next := uint32(0); next < sent; {
		kind, body, err := readFrame(there, buf)
		require.NoError(t, err, "after %d of %d events", next, sent)
		if kind != frameEvent {
			continue
		}
		var got event.Event
		require.NoError(t, got.Decode(body))
		require.Equal(t, next, got.Number)
		next++
	}
}

// Of a frame of which the rest is late, no byte is lost to a deadline on the clock of the wall, which runs on while the
// process is stopped.
func TestLateRestOfAFrame(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	e := someEvent()
	frame := frameOf(frameEvent, frameVersion, e.Encode(make([]byte, event.Wire)))
	s := &Site{job: &job{}} // nobody moves its clock on: it is as if the process were stopped
	s.peer = 10 * time.Millisecond
	c := &controlConn{Conn: a}
	go func() {
		b.Write(frame[:frameHead+3])
		time.Sleep(readAgain + 10*s.peer)
		b.Write(frame[frameHead+3:])
	}()
	in := bufio.NewReader(a)
	require.NoError(t, s.awaitFrame(c, in, frameHead))
	require.NoError(t, s.awaitFrame(c, in, len(frame)))
	kind, body, err := readFrame(in, make([]byte, frameMax))
	require.NoError(t, err)
	require.Equal(t, byte(frameEvent), kind)
	require.Equal(t, frame[frameHead:], body)
}

// A good bye comes after what a slow neighbor has not taken yet.
func TestByeAfterWhatIsUnsent(t *testing.T) {
	a, b := net.Pipe()
	defer b.Close()
	c := &controlConn{Conn: a}
	e := someEvent()
	c.send(frameEvent, &e) // nobody reads: a pipe holds nothing
	require.NotEmpty(t, c.unsent)
	go func() {
		time.Sleep(2 * sendFor)
		c.bye()
	}()
	time.Sleep(3 * sendFor) // longer than any other frame is waited for
	buf := make([]byte, frameMax)
	for _, want := range []byte{frameEvent, frameBye} {
		kind, _, err := readFrame(b, buf)
		require.NoError(t, err)
		require.Equal(t, want, kind)
	}
}
