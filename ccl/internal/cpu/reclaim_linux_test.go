package cpu

import (
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/shm"
)

// twoOfAHost are a Comm's two ranks in this process, on memory that other processes can share.
func twoOfAHost(t *testing.T) [2]*Comm {
	t.Helper()
	h, err := shm.NewShared()
	require.NoError(t, err)
	j := enterJob(t.Name(), 0)
	s := j.site(0)
	s.topo, s.host = topology([]int{0, 0}, 1), h
	off, err := h.Alloc(regionBytes(2))
	require.NoError(t, err)
	var c [2]*Comm
	for r := range c {
		c[r], err = newComm(s, worldID, membersOf([]int{0, 1}), s.topo, r, off, Options{})
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, c := range c {
			j.remove(&c.Member)
		}
		s.host = privateHost()
		j.leave()
		h.Close()
	})
	return c
}

// takenBy is how much memory the host has.
func takenBy(t *testing.T, h *shm.Host) int {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(h.Descriptor(), &st))
	return int(st.Blocks * 512)
}

// unusedBy is how much of a host's space can be handed out.
func unusedBy(h *shm.Host) int {
	n := uint64(0)
	for _, r := range h.Unused() {
		n += r.Pages()
	}
	return int(n) * shm.Page
}

// A call that fails waits for a rank that writes, but not for long, and only such a rank has memory taken from it.
func TestReclaim(t *testing.T) {
	c := twoOfAHost(t)
	mem, err := c[0].MakeMemory(10 * shm.Page)
	require.NoError(t, err)
	defer shm.FreeMemory(unsafe.Pointer(&mem[0]))
	dst, f := mem[shm.Page:3*shm.Page], fault(Canceled, -1, "on purpose")
	place := c[0].site.host.SpanOf(dst)

	require.Equal(t, f, c[0].reclaim(dst, f))
	require.Equal(t, place, c[0].site.host.SpanOf(dst), "nobody writes: nothing is replaced")

	require.Nil(t, c[1].mayTouch())
	done := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { c[1].touched(); close(done) })
	require.Equal(t, f, c[0].reclaim(dst, f))
	<-done
	require.Zero(t, c[0].local.touches(1).Load(), "it is waited for")

	require.Nil(t, c[1].mayTouch())
	began := time.Now()
	require.Equal(t, f, c[0].reclaim(dst, f))
	require.Less(t, time.Since(began), time.Second)
	require.NotEqual(t, place, c[0].site.host.SpanOf(dst))
	require.Equal(t, place.Base, c[0].site.host.SpanOf(mem[:shm.Page]).Base)
	c[1].touched()
}
