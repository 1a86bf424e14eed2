package tcp

import (
	"context"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// limitFiles lets the process open no more files until the test ends or calls raise.
func limitFiles(t *testing.T) (raise func()) {
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	names, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	// The lowest free number is the limit once all below it are in use.
	var plugs []*os.File
	low := syscall.Rlimit{Cur: uint64(len(names)) + 16, Max: old.Max}
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
	for full := 0; full < 20; { // what earlier tests have left may still be about to close
		f, err := os.Open(os.DevNull)
		if err != nil {
			require.ErrorIs(t, err, syscall.EMFILE)
			full++
			time.Sleep(time.Millisecond)
			continue
		}
		full = 0
		plugs = append(plugs, f)
	}
	raise = func() {
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
		for _, f := range plugs {
			f.Close()
		}
		plugs = nil
	}
	t.Cleanup(raise)
	return raise
}

func TestTooManyFiles(t *testing.T) {
	checkLeaks(t)
	a, b := listen(t), listen(t)
	raise := limitFiles(t)

	for _, open := range []func() error{
		func() error { _, err := Listen("job", noSecret, auth.Plain, loopback); return err },
		func() error { _, err := a.Open(soon(t), MakeKey(1, 0, 0, 1), 0, b.Addr()); return err },
	} {
		err := open()
		require.ErrorIs(t, err, syscall.EMFILE)
		require.ErrorContains(t, err, "files open; raise it with ulimit -n, or run fewer ranks per process")
	}

	raise()
	c, err := a.Open(soon(t), MakeKey(1, 0, 0, 1), 0, b.Addr())
	require.NoError(t, err, "once there are files again")
	require.NoError(t, c.Close())
}

// TestAcceptOutOfFiles: the Node knows that it cannot accept, says so to who opens, and goes on when it can.
func TestAcceptOutOfFiles(t *testing.T) {
	checkLeaks(t)
	b := listen(t)
	// A socket that is there already can still connect.
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer syscall.Close(fd)
	raise := limitFiles(t)
	require.NoError(t, syscall.Connect(fd, &syscall.SockaddrInet4{Addr: loopback.As4(), Port: int(b.Addr().Port())}))
	require.Eventually(t, func() bool { return b.trouble.Load() != nil }, 10*time.Second, time.Millisecond)
	err = *b.trouble.Load()
	require.ErrorIs(t, err, syscall.EMFILE)
	require.ErrorContains(t, err, "tcp: cannot accept connections at "+b.Addr().String())
	require.ErrorContains(t, err, "ulimit -n")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, b.gaveUp(ended, netip.AddrPort{}, nil), "not connected: context canceled; here: tcp: cannot accept")

	raise()
	c, err := b.Open(soon(t), MakeKey(1, 0, 0, 1), 0, b.Addr())
	require.NoError(t, err)
	require.NoError(t, c.Close())
	require.Nil(t, b.trouble.Load())
}
