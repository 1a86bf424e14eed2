package plane

import (
	"bufio"
	"testing"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/internal/auth"
	"github.com/stretchr/testify/require"
)

// Of a frame of which the rest is late, no byte is lost to a deadline on the clock of the wall, which runs on while the
// process is stopped.
func TestLateRestOfAFrame(t *testing.T) {
	a, b := auth.Pipe()
	defer a.Close()
	defer b.Close()
	e := event.New(8, call.Aborted, 5, 3, 2, nil)
	body := e.Encode(make([]byte, event.Wire))
	frame := append([]byte{byte((control.FrameHead + len(body)) & 0xff), byte((control.FrameHead + len(body)) >> 8), control.FrameEvent, control.FrameVersion}, body...)
	s := newSite(&Job{}, 0) // nobody moves its clock on: it is as if the process were stopped
	s.Job.peer = 10 * time.Millisecond
	c := &control.Conn{Stream: a}
	go func() {
		b.Write(frame[:control.FrameHead+3])
		time.Sleep(readAgain + 10*s.Job.peer)
		b.Write(frame[control.FrameHead+3:])
	}()
	in := bufio.NewReader(a)
	require.NoError(t, s.near.awaitFrame(c, in, control.FrameHead))
	require.NoError(t, s.near.awaitFrame(c, in, len(frame)))
	kind, body, err := control.ReadFrame(in, make([]byte, control.FrameMax))
	require.NoError(t, err)
	require.Equal(t, byte(control.FrameEvent), kind)
	require.Equal(t, frame[control.FrameHead:], body)
}
