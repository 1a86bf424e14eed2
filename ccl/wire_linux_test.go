package ccl_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
)

// TestWireThroughSmallBuffers: the buffers of the connections hold less than a record between them. A rank that reduces in
// place may receive only where it has sent from, so what a record holds must count as sent before the kernel has taken it all.
func TestWireThroughSmallBuffers(t *testing.T) {
	t.Setenv("GOCCL_ALGO", "allreduce=doubling")
	for _, wire := range []string{"plain", "auth", "encrypt"} {
		t.Run(wire, func(t *testing.T) {
			options := func(int) *ccl.Options { return &ccl.Options{Backend: "cpu", Wire: wire, Timeout: time.Minute} }
			world(t, 2, []string{"a", "b"}, options, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				require.NoError(t, ccl.Barrier(ctx, c)) // they are connected
				if c.Rank() == 0 {
					require.Positive(t, narrow(), "connections")
				}
				x := make([]int64, 1<<15)
				for i := range x {
					x[i] = int64(i + c.Rank())
				}
				require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
				for i := range x {
					require.Equal(t, int64(2*i+1), x[i], i)
				}
			})
		})
	}
}

// narrow makes the buffers of the TCP connections of this process 32 KiB each, and returns how many there are. Linux doubles what is asked for.
func narrow() (n int) {
	for fd := range 1024 {
		if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_INET && domain != unix.AF_INET6 {
			continue
		}
		if _, err := syscall.Getpeername(fd); err != nil {
			continue
		}
		for _, buffer := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
			unix.SetsockoptInt(fd, unix.SOL_SOCKET, buffer, 16384)
		}
		n++
	}
	return n
}
