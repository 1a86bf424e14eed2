package watch

import (
	"bufio"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/control"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/internal/auth"
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
	s := hostOf(t, 1, 10*time.Millisecond) // nobody moves its clock on: it is as if the process were stopped
	near := Neighbors{host: s}
	c := &control.Conn{Stream: a}
	go func() {
		b.Write(frame[:control.FrameHead+3])
		time.Sleep(readAgain + 10**s.Job.Peer)
		b.Write(frame[control.FrameHead+3:])
	}()
	in := bufio.NewReader(a)
	kind, body, err := near.Next(c, in, make([]byte, control.FrameMax))
	require.NoError(t, err)
	require.Equal(t, byte(control.FrameEvent), kind)
	require.Equal(t, frame[control.FrameHead:], body)
}
