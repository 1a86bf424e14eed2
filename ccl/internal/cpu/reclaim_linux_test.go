package cpu

import (
	"crypto/rand"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// twoOfAHost are a Comm's two ranks in this process, on memory that other processes can share.
func twoOfAHost(t *testing.T) [2]*Comm {
	t.Helper()
	h, err := shm.NewShared()
	require.NoError(t, err)
	j := plane.EnterJob(t.Name()+rand.Text(), 0) // its sockets are named by it, and another run of this test may be under way
	s := j.Site(0)
	s.Job.World.Topo, s.Here.Host, s.Here.Procs = group.Topology([]int{0, 0}, 1), h, []int{0, 0}
	off, err := h.Alloc(region.Bytes(2))
	require.NoError(t, err)
	var c [2]*Comm
	for r := range c {
		c[r], err = newComm(s, group.WorldID, group.MembersOf([]int{0, 1}), s.Job.World.Topo, r, off, plane.Options{})
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		for _, c := range c {
			j.Remove(&c.rank)
		}
		s.Here.Host = plane.PrivateHost()
		j.Leave()
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
	dst, f := mem[shm.Page:3*shm.Page], call.NewFault(call.Canceled, -1, "on purpose")
	place := c[0].rank.Site.Here.Host.SpanOf(dst)

	require.Equal(t, f, c[0].mem.Reclaim(dst, f))
	require.Equal(t, place, c[0].rank.Site.Here.Host.SpanOf(dst), "nobody writes: nothing is replaced")

	require.Nil(t, c[1].mem.MayTouch())
	done := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { c[1].mem.Touched(); close(done) })
	require.Equal(t, f, c[0].mem.Reclaim(dst, f))
	<-done
	require.Zero(t, c[0].rank.Share.Local.Touches(1).Load(), "it is waited for")

	require.Nil(t, c[1].mem.MayTouch())
	require.Equal(t, f, c[0].mem.Reclaim(dst, f)) // though c[1] still writes
	require.NotEqual(t, place, c[0].rank.Site.Here.Host.SpanOf(dst))
	require.Equal(t, place.Base, c[0].rank.Site.Here.Host.SpanOf(mem[:shm.Page]).Base)
	c[1].mem.Touched()
}
