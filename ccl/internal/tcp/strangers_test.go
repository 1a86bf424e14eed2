package tcp

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// closing is a connection that notes its Close.
type closing struct {
	net.Conn
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestStrangersMakeRoom(t *testing.T) {
	s := newStrangers(2, 0) // no patience: the oldest goes at once
	a, b, c, d := &closing{}, &closing{}, &closing{}, &closing{}
	inA := s.admit(a, nil)
	inB := s.admit(b, nil)
	require.False(t, a.closed)
	s.admit(c, nil)
	require.True(t, a.closed)
	require.False(t, b.closed)

	require.False(t, s.leave(inA))
	require.True(t, s.leave(inB)) // known now: its place is free
	require.False(t, s.leave(inB))
	s.admit(d, nil)
	require.False(t, b.closed || c.closed || d.closed)
	require.Equal(t, 2, s.list.Len())
}

func TestStrangersWaitForRoom(t *testing.T) {
	s := newStrangers(1, time.Hour)
	a, b := &closing{}, &closing{}
	inA := s.admit(a, nil)
	admitted := make(chan struct{})
	go func() {
		s.admit(b, nil)
		close(admitted)
	}()
	require.True(t, s.leave(inA))
	<-admitted
	require.False(t, a.closed || b.closed)

	stop := make(chan struct{})
	close(stop)
	c := &closing{}
	require.Nil(t, s.admit(c, stop))
	require.True(t, c.closed)
	require.False(t, b.closed)
}
