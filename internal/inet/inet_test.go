package inet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// rangeOf sets GOCCL_PORTS to n free ports of 127.0.0.1, and returns the first.
func rangeOf(t *testing.T, n int) (from int) {
	t.Helper()
	for from = 15000; from < 30000; from += n {
		var all []net.Listener
		for i := range n {
			l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(from+i)))
			if err != nil {
				break
			}
			all = append(all, l)
		}
		for _, l := range all {
			l.Close()
		}
		if len(all) == n {
			t.Setenv("GOCCL_PORTS", fmt.Sprintf("%d-%d", from, from+n-1))
			return from
		}
	}
	t.Fatal("no range is free")
	return 0
}

// Every port of the range is taken once, and then it is used up; a port that is given is taken whatever the range.
func TestListenInRange(t *testing.T) {
	from := rangeOf(t, 4)
	var ports []int
	for range 4 {
		l, err := Listen("127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	require.ElementsMatch(t, []int{from, from + 1, from + 2, from + 3}, ports)
	_, err := Listen("127.0.0.1:0")
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	require.EqualError(t, err, fmt.Sprintf("GOCCL_PORTS=%d-%d is used up: address already in use: all 4 ports of it are taken at 127.0.0.1. A host needs one for each process, and rank 0's one more; a job that grows needs twice as many", from, from+3))
	t.Setenv("GOCCL_PORTS", "")
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	free := l.Addr().String()
	l.Close()
	t.Setenv("GOCCL_PORTS", fmt.Sprintf("%d-%d", from, from+3))
	l, err = Listen(free)
	require.NoError(t, err)
	require.Equal(t, free, l.Addr().String())
	l.Close()

	_, err = Listen("192.0.2.1:0") // TEST-NET-1: what does not depend on the port ends the search
	require.ErrorIs(t, err, syscall.EADDRNOTAVAIL)
	for _, no := range []string{"20000", "0-1", "2-1", "1-65536", "a-b", "1-2-3", "-", "+1-2"} {
		t.Setenv("GOCCL_PORTS", no)
		_, err = Listen("127.0.0.1:0")
		require.ErrorIs(t, err, ErrRange, no)
		require.ErrorContains(t, err, "GOCCL_PORTS="+no+": it takes from-to, such as 20000-20099")
	}
}

// The port of a connection is free for a listener, and one that connects to itself has found nobody.
func TestDialLeavesThePort(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	var taken net.Listener
	for range 20 { // another program's connection may have the same port
		conn, err := Dial(t.Context(), "tcp", l.Addr().String(), time.Minute)
		require.NoError(t, err)
		defer conn.Close()
		if taken, err = Listen(conn.LocalAddr().String()); err == nil {
			break
		}
		require.ErrorIs(t, err, syscall.EADDRINUSE)
	}
	require.NotNil(t, taken, "no port of 20 connections is free for a listener")
	taken.Close()
	_, err = Dial(t.Context(), "tcp", taken.Addr().String(), time.Minute)
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.Nil(t, Of(err))
}

func TestWhatKeepsThisHost(t *testing.T) {
	dialError := func(call string, errno syscall.Errno) error {
		return fmt.Errorf("planted: %w", &net.OpError{Op: "dial", Err: os.NewSyscallError(call, errno)})
	}
	for errno, want := range map[syscall.Errno]bool{syscall.ENETUNREACH: true, syscall.EHOSTUNREACH: true, syscall.ENETDOWN: true, syscall.ECONNREFUSED: false, syscall.ETIMEDOUT: false} {
		require.Equal(t, want, CutOff(dialError("connect", errno)), errno)
	}
	require.True(t, IsTimeout(dialError("connect", syscall.ETIMEDOUT)))
	require.True(t, IsTimeout(context.DeadlineExceeded))
	require.False(t, IsTimeout(dialError("connect", syscall.EPERM)))
	for _, tc := range []struct {
		call    string
		errno   syscall.Errno
		network string
		want    bool
	}{
		{"socket", syscall.EPERM, "tcp", true}, {"socket", syscall.EACCES, "unix", true}, {"getsockopt", syscall.EPERM, "unix", true}, {"getpeername", syscall.ENOSYS, "tcp", true},
		{"connect", syscall.EPERM, "tcp", true}, {"connect", syscall.EACCES, "unix", false}, {"connect", syscall.ECONNREFUSED, "tcp", false},
	} {
		require.Equal(t, tc.want, denied(dialError(tc.call, tc.errno), tc.network), tc)
	}
	require.False(t, denied(errors.New("connect"), "tcp"))
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "10.0.0.1:1": false, "c1:1": false, "x": false} {
		require.Equal(t, want, Here(addr), addr)
	}
	require.True(t, LeadsHere(nil, netip.MustParseAddr("127.0.0.7")))
	require.False(t, LeadsHere(nil, netip.MustParseAddr("192.0.2.1")))
	for _, a := range Ours(nil) {
		require.True(t, LeadsHere(nil, a), a)
	}
}
