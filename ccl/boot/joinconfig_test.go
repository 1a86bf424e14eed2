package boot

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
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
	got, err := listenFirst("tcp", []string{taken, free})
	require.NoError(t, err)
	require.Equal(t, free, got.Addr().String())
	got.Close()
	_, err = listenFirst("tcp", []string{taken, taken})
	require.ErrorIs(t, err, System)
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.True(t, strings.HasPrefix(err.Error(), "boot: rank 0 cannot listen at any of "+taken), err)
}

// TestSquatter has a stranger at the socket where the ranks of this host would meet:
// each goes to rank 0 itself.
func TestSquatter(t *testing.T) {
	if !meetLocally {
		t.Skip("the ranks of a host cannot meet at a socket here")
	}
	noLeaks(t)
	root := freeRoot(t)
	l, err := net.Listen("unix", hostSocket("", root, ""))
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "what is it that you want of me? "+strconv.Itoa(1<<20))
			defer c.Close()
		}
	}()
	defer func() { l.Close(); <-done }()
	boots := joined(t, 4, func(r int) (*Boot, error) { return TCP(within(t, long), root, r, 4, nil) })
	swap(t, boots)
}
