package boot

import (
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/inet"
)

func TestIsEnding(t *testing.T) {
	require.True(t, isEnding(fmt.Errorf("x: %w", io.EOF)))
	require.True(t, isEnding(&net.OpError{Err: syscall.ECONNRESET}))
	require.False(t, isEnding(net.ErrClosed))
}

func TestLocalName(t *testing.T) {
	a := localName("host", "job", "x")
	require.Regexp(t, "^@goccl-[0-9a-f]{32}$", a)
	require.Equal(t, a, localName("host", "job", "x"))
	require.NotEqual(t, a, localName("host", "jobx", ""))
	require.NotEqual(t, a, localName("host", "job x"))
}

func TestListenFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	taken, free := l.Addr().String(), freeRoot(t)
	got, err := listenFirst(nil, inet.ListenAt, []string{taken, free})
	require.NoError(t, err)
	require.Equal(t, free, got.Addr().String())
	got.Close()
	_, err = listenFirst(nil, inet.ListenAt, []string{taken, taken})
	require.ErrorIs(t, err, System)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.True(t, strings.HasPrefix(err.Error(), "boot: rank 0 cannot listen at any of "+taken), err)
}
