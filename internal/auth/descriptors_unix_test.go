//go:build unix

package auth

import (
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// With 1,024 descriptors, the least that systems give, a port takes its 256; with fewer it leaves three quarters alone.
func TestStrangersLeaveDescriptors(t *testing.T) {
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	t.Cleanup(func() { require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) })
	for limit, want := range map[uint64]int{1024: 256, 256: 64, 100: 25} {
		low := old
		low.Cur = limit
		require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low))
		require.EqualValues(t, limit, descriptors())
		require.Equal(t, want, NewStrangers(&net.TCPAddr{}).max)
	}
}
