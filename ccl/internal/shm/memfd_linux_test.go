package shm

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestSharedHost(t *testing.T) {
	h, err := NewShared()
	require.NoError(t, err)
	testRegions(t, h)
	var file unix.Stat_t
	require.NoError(t, unix.Fstat(h.fd, &file))
	mapped := func() bool { // other tests leave mappings of their own hosts
		maps, err := os.ReadFile("/proc/self/maps")
		require.NoError(t, err)
		return regexp.MustCompile(fmt.Sprintf(` %d +/memfd:goccl `, file.Ino)).Match(maps)
	}
	require.True(t, mapped())
	h.Close()
	assert.False(t, mapped(), "mappings are left")
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
