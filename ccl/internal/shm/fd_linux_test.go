package shm

import (
	"net"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// ends are the two ends of a connection at a door of this process.
func ends(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	name := "goccl-test-" + strconv.Itoa(os.Getpid()) + t.Name()
	l, err := Listen(name)
	require.NoError(t, err)
	defer l.Close()
	_, err = Listen(name)
	require.ErrorIs(t, err, unix.EADDRINUSE)
	a, err = net.DialUnix("unix", nil, &net.UnixAddr{Name: "@" + name, Net: "unix"})
	require.NoError(t, err)
	b, err = l.AcceptUnix()
	require.NoError(t, err)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// Descriptors come with their proof, and only with that.
func TestDescriptorsTravel(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	defer h.Close()
	require.NoError(t, h.NewSlices())
	*(*byte)(h.Header()) = 42
	for _, tc := range []struct {
		name string
		send func(c *net.UnixConn) error
		want string
	}{
		{"with its proof", func(c *net.UnixConn) error {
			return SendFDs(c, []byte("proof"), h.Descriptor(), h.Slices().Descriptor())
		}, ""},
		{"with another", func(c *net.UnixConn) error {
			return SendFDs(c, []byte("other"), h.Descriptor(), h.Slices().Descriptor())
		}, "does not belong to this job"},
		{"with a part of it", func(c *net.UnixConn) error { return SendFDs(c, []byte("pro"), h.Descriptor(), h.Slices().Descriptor()) }, "does not belong to this job"},
		{"with one too few", func(c *net.UnixConn) error { return SendFDs(c, []byte("proof"), h.Descriptor()) }, "no descriptor was received"},
		{"the proof alone", func(c *net.UnixConn) error { _, err := c.Write([]byte("proof")); return err }, "no descriptor was received"},
		{"nothing", func(c *net.UnixConn) error { return c.Close() }, "EOF"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, b := ends(t)
			require.NoError(t, tc.send(a))
			fds, err := RecvFDs(b, []byte("proof"), 2)
			if tc.want != "" {
				require.ErrorContains(t, err, tc.want)
				return
			}
			require.NoError(t, err)
			for _, fd := range fds {
				flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
				require.NoError(t, err)
				require.NotZero(t, flags&unix.FD_CLOEXEC)
			}
			got, err := Open(fds[0])
			require.NoError(t, err)
			defer got.Close()
			require.NoError(t, got.OpenSlices(fds[1], nil))
			require.NotSame(t, h.Slices(), got.Slices(), "this process has not had them")
			require.EqualValues(t, 42, *(*byte)(got.Header()))
			require.Equal(t, h.Processors(), got.Processors())
		})
	}
}

// A host has one identity, whoever asks.
func TestHostIdentity(t *testing.T) {
	require.NotEmpty(t, HostIdentity())
	require.Equal(t, HostIdentity(), HostIdentity())
}
