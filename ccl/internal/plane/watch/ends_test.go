package watch

import (
	"io"
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/plane/event"
)

// entrance counts what it is told.
type entrance struct{ shut, dropped int }

func (e *entrance) Shut() { e.shut++ }
func (e *entrance) Drop() { e.dropped++ }

// A try at sharing memory that is given up leaves nothing: its entrance, its connections, and what the log had no room for.
func TestReset(t *testing.T) {
	s := hostOf(t, 1, 0)
	s.Host = PrivateHost()
	e := &entrance{}
	s.SetEntrance(e)
	s.Log.scanned.Store(7)
	s.Log.kept.events = append(s.Log.kept.events, event.Event{})
	l, err := net.Listen("unix", "")
	require.NoError(t, err)
	defer l.Close()
	there, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	defer there.Close()
	here, err := l.Accept()
	require.NoError(t, err)
	s.WatchEnd(here.(*net.UnixConn), 0, e, nil)
	require.Len(t, s.Ends.unix, 1)
	s.Reset()
	require.Equal(t, entrance{1, 1}, *e)
	require.Nil(t, s.Host)
	require.Nil(t, s.Ends.Entrance)
	require.Empty(t, s.Ends.unix)
	require.Zero(t, s.Log.scanned.Load())
	require.Empty(t, s.Log.kept.events)
	said, err := io.ReadAll(there)
	require.NoError(t, err)
	require.Equal(t, "b", string(said), "the other end hears that this is no accident")

	late, err := net.Dial("unix", l.Addr().String())
	require.NoError(t, err)
	defer late.Close()
	here, err = l.Accept()
	require.NoError(t, err)
	s.WatchEnd(here.(*net.UnixConn), 0, e, nil) // it came through an entrance that is no longer the Site's
	require.Empty(t, s.Ends.unix)
	said, err = io.ReadAll(late)
	require.NoError(t, err)
	require.Equal(t, "b", string(said))
}
