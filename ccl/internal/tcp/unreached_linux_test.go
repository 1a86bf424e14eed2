package tcp

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/internal/auth"
)

// Where there is no way to a peer, an Open ends with that, long before its context, with both addresses. One
// that ends with its context says so as well, and so does one that bears it for as long as it takes.
func TestUnreached(t *testing.T) {
	t.Parallel()           // on a goroutine of its own
	runtime.LockOSThread() // for good: nothing else is to run in this network, which has no way to anywhere
	n, err := Listen("job", noSecret, auth.Plain, loopback)
	require.NoError(t, err)
	defer n.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		t.Skipf("hardware: no network of its own: %v", err)
	}
	peer := netip.MustParseAddrPort("192.0.2.1:40000") // TEST-NET-1, RFC 5737
	open := func(ctx context.Context, bear time.Duration) error {
		n.Bear(bear)
		_, err := n.Open(ctx, MakeKey(1, 0, 0, 1), 0, peer)
		return err
	}
	// ended is what Open says at the end of its context, if the context left it the time for one attempt.
	ended := func() error {
		for limit := 10 * time.Millisecond; ; limit *= 2 {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			err := open(ctx, 0)
			cancel()
			if errors.As(err, new(*Unmade)) || limit > time.Minute {
				return err
			}
		}
	}
	for _, err := range []error{open(soon(t), time.Millisecond), ended()} {
		require.ErrorIs(t, err, syscall.ENETUNREACH)
		var u *Unmade
		require.ErrorAs(t, err, &u)
		require.EqualError(t, u, "127.0.0.1 does not reach 192.0.2.1:40000: connect: network is unreachable")
	}
}

// A host that does not answer at all is told as that.
func TestSilent(t *testing.T) {
	t.Parallel()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(fd)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: loopback.As4()}))
	require.NoError(t, unix.Listen(fd, 0)) // which takes one; what comes later it drops
	at, err := unix.Getsockname(fd)
	require.NoError(t, err)
	peer := netip.AddrPortFrom(loopback, uint16(at.(*unix.SockaddrInet4).Port))
	full, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	require.NoError(t, err)
	defer unix.Close(full)
	require.NoError(t, unix.Connect(full, at))

	n, err := Listen("job", noSecret, auth.Plain, loopback)
	require.NoError(t, err)
	defer n.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*silentFor)
	defer cancel()
	_, err = n.Open(ctx, MakeKey(1, 0, 0, 1), 0, peer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "127.0.0.1 does not reach "+peer.String()+": no answer: it is down, or a firewall drops what is sent to it")
}
