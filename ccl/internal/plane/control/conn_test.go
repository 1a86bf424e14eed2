package control

import (
	"io"
	"net"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/internal/auth"
)

// Each host of the tree sends what is for one host to a host beside it, from which that is nearer.
func TestTowards(t *testing.T) {
	for _, tc := range []struct{ h, to, want int }{{1, 0, 0}, {2, 0, 0}, {6, 0, 2}, {0, 1, 1}, {0, 6, 2}, {2, 6, 6}, {3, 6, 1}, {1, 8, 3}, {7, 8, 3}, {5, 1, 2}} {
		assert.Equal(t, tc.want, Towards(tc.h, tc.to), "from %d to %d", tc.h, tc.to)
	}
	const hosts, deep = 100, 6
	for h := range hosts {
		for to := range hosts {
			at, hops := h, 0
			for ; at != to; hops++ {
				next := Towards(at, to)
				require.True(t, (&Conn{Host: next}).InTree(at), "from %d to %d: %d is not beside %d", h, to, next, at)
				at = next
			}
			require.LessOrEqual(t, hops, 2*deep, "from %d to %d", h, to)
		}
	}
}

// What a Conn sends, ReadFrame reads, one frame after the other.
func TestSendFrames(t *testing.T) {
	a, b := auth.Pipe()
	defer b.Close()
	c := &Conn{Stream: a}
	e := someEvent()
	go func() {
		c.Beat()
		c.sendEvent(&e)
		c.Bye()
	}()
	buf := make([]byte, FrameMax)
	for _, want := range []struct {
		kind byte
		body []byte
	}{{FrameBeat, []byte{}}, {FrameEvent, e.Encode(make([]byte, event.Wire))}, {FrameBye, []byte{}}} {
		kind, body, err := ReadFrame(b, buf)
		require.NoError(t, err)
		assert.Equal(t, want.kind, kind)
		assert.Equal(t, want.body, body)
	}
	_, _, err := ReadFrame(b, buf)
	assert.ErrorIs(t, err, io.EOF)
}

// A neighbor that reads nothing for a while gets every frame after that, whole and in order: what a deadline cuts off a
// frame must come before the next.
func TestSlowNeighborGetsWholeFrames(t *testing.T) {
	for name, secret := range map[string]auth.Secret{"secret": auth.Given([]byte("s")), "none": auth.ByKernel()} {
		t.Run(name, func(t *testing.T) { slowNeighbor(t, secret) })
	}
}

func slowNeighbor(t *testing.T, secret auth.Secret) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s")) // TCP opens a window of this size slowly
	require.NoError(t, err)
	defer l.Close()
	dialed, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	defer dialed.Close()
	taken, err := l.Accept()
	require.NoError(t, err)
	defer taken.Close()
	require.NoError(t, taken.(*net.UnixConn).SetWriteBuffer(4096))
	served := make(chan *auth.Stream, 1)
	go func() {
		s, _, err := auth.Server(taken, "job", secret, func([]byte) ([]byte, error) { return nil, nil })
		assert.NoError(t, err)
		served <- s
	}()
	there, _, err := auth.Client(dialed, "job", secret, nil)
	require.NoError(t, err)

	c := &Conn{Stream: <-served}
	e := someEvent()
	sent := uint64(0)
	for c.Stream.Unsent() < 10*FrameMax {
		e.Number = sent
		sent++
		c.sendEvent(&e)
		c.Beat()
	}
	done, stop := make(chan struct{}), atomic.Bool{}
	defer func() { stop.Store(true); <-done }()
	go func() {
		defer close(done)
		for ; !stop.Load(); time.Sleep(time.Millisecond) {
			c.Flush()
		}
	}()
	there.SetReadDeadline(time.Now().Add(30 * time.Second))
	buf := make([]byte, FrameMax)
	for next := uint64(0); next < sent; {
		kind, body, err := ReadFrame(there, buf)
		require.NoError(t, err, "after %d of %d events", next, sent)
		if kind != FrameEvent {
			continue
		}
		var got event.Event
		require.NoError(t, got.Decode(body))
		require.Equal(t, next, got.Number)
		next++
	}
}

// What is kept for a neighbor, or for a flush, is given back once it is sent: a call that was slow once leaves
// nothing, on none of the connections of a process.
func TestNothingIsKeptOnceSent(t *testing.T) {
	a, b := auth.Pipe()
	defer b.Close()
	c := &Conn{Stream: a}
	s := status.Status{Rank: 1, Size: 2}
	for c.Stream.Unsent() < unsentMax { // nobody reads
		c.sendStatus(&s)
	}
	c.sendStatus(&s)
	require.NotEmpty(t, c.batch)
	go io.Copy(io.Discard, b)
	for c.Flush() {
	}
	c.Flush()
	require.Zero(t, c.Stream.Unsent()+cap(c.batch))
}

// A good bye comes after what a slow neighbor has not taken yet.
func TestByeAfterWhatIsUnsent(t *testing.T) {
	a, b := auth.Pipe()
	defer b.Close()
	c := &Conn{Stream: a}
	e := someEvent()
	c.sendEvent(&e) // nobody reads: a pipe holds nothing
	require.NotZero(t, c.Stream.Unsent())
	go func() {
		time.Sleep(2 * sendFor)
		c.Bye()
	}()
	time.Sleep(3 * sendFor) // longer than any other frame is waited for
	buf := make([]byte, FrameMax)
	for _, want := range []byte{FrameEvent, FrameBye} {
		kind, _, err := ReadFrame(b, buf)
		require.NoError(t, err)
		require.Equal(t, want, kind)
	}
}
