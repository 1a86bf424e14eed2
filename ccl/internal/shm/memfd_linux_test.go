package shm

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSharedHost(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	testRegions(t, h)
	fd, err := unix.Dup(h.fd)
	require.NoError(t, err)
	h.Close()
	unix.Close(fd)
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	assert.False(t, strings.Contains(string(maps), "memfd:goccl"), "mappings are left")
}

// Another process sees the same memory; here, a second descriptor of it.
func TestSharedHostOfTwo(t *testing.T) {
	a, err := NewShared()
	require.NoError(t, err)
	defer a.Close()
	fd, err := unix.Dup(a.fd)
	require.NoError(t, err)
	b, err := Open(fd)
	require.NoError(t, err)
	defer b.Close()
	off, err := a.Alloc(100)
	require.NoError(t, err)
	next, err := b.Alloc(100)
	require.NoError(t, err)
	assert.NotEqual(t, off, next)
	x, err := a.View(off, 100)
	require.NoError(t, err)
	y, err := b.View(off, 100)
	require.NoError(t, err)
	x[99] = 5
	assert.Equal(t, byte(5), y[99])
	a.Free(off, 100)
	assert.Zero(t, y[99], "freed memory reads as zero")
}

// A process cannot pull the memory out from under the others.
func TestSharedHostIsSealed(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	defer h.Close()
	assert.ErrorIs(t, unix.Ftruncate(h.fd, 0), unix.EPERM)
	assert.ErrorIs(t, unix.Ftruncate(h.fd, 2*memfdBytes), unix.EPERM)
	_, err = unix.FcntlInt(uintptr(h.fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE)
	assert.ErrorIs(t, err, unix.EPERM)
}

// What the kernel refuses is an error that says what was asked for.
func TestMemoryThatIsRefused(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	defer h.Close()
	assert.ErrorContains(t, reserve(h.fd, memfdBytes, 1<<20), "shared memory: no 1024 KiB left on this host")
	_, err = mapRegion(-1, 0, 4096)
	assert.ErrorContains(t, err, "shared memory: cannot map 4 KiB")
	_, err = Open(-1)
	assert.Error(t, err)
}
