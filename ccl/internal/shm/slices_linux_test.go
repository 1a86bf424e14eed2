package shm

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// sharedWithSlices is a Host with a memory of its own for slices, as jobs have it, and the same as another process sees it.
func sharedWithSlices(t *testing.T) (mine, theirs *Host) {
	t.Helper()
	h, err := NewShared()
	require.NoError(t, err)
	require.NoError(t, h.NewSlices())
	return h, again(t, h)
}

// again opens h anew, as a process does that has had none of its memory.
func again(t *testing.T, h *Host) *Host {
	t.Helper()
	dup := func(fd int) int {
		fd, err := unix.Dup(fd)
		require.NoError(t, err)
		return fd
	}
	other, err := Open(dup(h.fd))
	require.NoError(t, err)
	require.NoError(t, other.OpenSlices(dup(h.Slices().fd), nil))
	return other
}

// Slices stay shared where a job takes over the memory of another, whichever way it comes by it, and after the other has been closed.
// In a job that does not, they are ordinary memory.
func TestSlicesOfALaterJob(t *testing.T) {
	old, _ := sharedWithSlices(t)
	mem, err := MakeMemory(old, 3*Page)
	require.NoError(t, err)
	defer FreeMemory(unsafe.Pointer(&mem[0]))
	was := old.SpanOf(mem[10:])
	require.NotZero(t, was.Size)
	require.Less(t, taken(t, old), headerBytes+Page, "slices take nothing of the job's memory")

	made, err := NewShared()
	require.NoError(t, err)
	require.False(t, made.ShareSlices(nil))
	require.True(t, made.ShareSlices(old))
	fd, err := unix.Dup(made.Slices().fd)
	require.NoError(t, err)
	file, err := unix.Dup(made.fd)
	require.NoError(t, err)
	got, err := Open(file)
	require.NoError(t, err)
	require.NoError(t, got.OpenSlices(fd, old))
	require.Same(t, old.Slices(), got.Slices(), "it is known")
	_, err = unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	require.ErrorIs(t, err, unix.EBADF, "and its second descriptor closed")
	alone, _ := sharedWithSlices(t)
	private := NewPrivate(64)
	require.True(t, private.ShareSlices(old), "for the job after it")
	require.Equal(t, 4, old.Slices().Jobs())

	old.Close()
	old.Close()
	require.Equal(t, 3, made.Slices().Jobs())
	require.Equal(t, was, made.SpanOf(mem[10:]))
	require.Equal(t, was, got.SpanOf(mem[10:]))
	require.Zero(t, alone.SpanOf(mem[10:]).Size)
	require.Zero(t, private.SpanOf(mem[10:]).Size)
	view, err := made.Slices().View(was.Base, int(was.Size))
	require.NoError(t, err)
	mem[10] = 7
	require.EqualValues(t, 7, view[10])
	require.True(t, TakeBack(mem[Page:2*Page]), "where others can map it, too")
	require.NotZero(t, made.SpanOf(mem[Page:2*Page]).Size)
	slices := made.Slices()
	for _, h := range []*Host{made, got, alone, private} {
		h.Close()
	}
	require.True(t, slices.over, "the last one closes it")
	mem[10] = 8 // and slices outlive it
}

// ledgerOf makes the first page of a process's ledger, and returns where it lies.
func ledgerOf(t *testing.T, h *Host) uint64 {
	require.NoError(t, h.Slices().addPage())
	return h.Slices().ledger.first
}

// A process has a ledger from its first slice on. Then the others are shown where it lies, and to which job it belongs, in each job
// that the process is in.
func TestLedgerOfTheFirstSlice(t *testing.T) {
	h, other := sharedWithSlices(t)
	defer h.Close()
	defer other.Close()
	s := h.Slices()
	before := taken(t, s)
	var own, later, left atomic.Uint64
	require.Zero(t, s.SetHome(1))
	s.ShowLedger(&own)
	s.ShowLedger(&left)
	s.HideLedger(&left)
	require.EqualValues(t, 1, s.SetHome(2))
	require.True(t, s.IsHome(2))
	require.Equal(t, before, taken(t, s), "without slices it takes nothing")
	mem, err := MakeMemory(h, Page)
	require.NoError(t, err)
	s.ShowLedger(&later)
	require.NotZero(t, own.Load())
	require.Equal(t, own.Load(), later.Load())
	require.Zero(t, left.Load(), "that job has been left")
	require.True(t, s.IsHome(2))
	require.False(t, other.Slices().Reap(own.Load(), 1), "it belongs to another job")
	s.LeaveHome(2, 1)
	require.True(t, other.Slices().Reap(own.Load(), 1))
	require.LessOrEqual(t, taken(t, s), before)
	FreeMemory(unsafe.Pointer(&mem[0]))
}

// The slices of a process that has ended are emptied, whatever it had done with them, and nobody else's are. Only one job does that.
func TestReap(t *testing.T) {
	h, other := sharedWithSlices(t)
	defer h.Close()
	own, theirs := ledgerOf(t, h), ledgerOf(t, other)
	require.NotEqual(t, own, theirs)
	require.Zero(t, other.Slices().SetHome(1))
	require.EqualValues(t, 1, other.Slices().SetHome(2))
	other.Slices().LeaveHome(1, 5)
	require.EqualValues(t, 2, other.Slices().SetHome(2), "it belongs to another by now")
	mine, err := MakeMemory(h, 5*Page)
	require.NoError(t, err)
	defer FreeMemory(unsafe.Pointer(&mine[0]))
	before := taken(t, h.Slices())

	var all [][]byte
	for i := range 3 * len(ledgerPage{}.words) { // more than one page of the ledger
		mem, err := MakeMemory(other, (1+i%3)*Page)
		require.NoError(t, err)
		all = append(all, mem)
	}
	for i, mem := range all {
		switch i % 4 {
		case 0:
			FreeMemory(unsafe.Pointer(&mem[0]))
		case 1:
			require.True(t, TakeBack(mem[:len(mem)/Page/2*Page]))
		}
	}
	for i := range mine {
		mine[i] = 1
	}
	for _, mem := range all[1:] {
		if h := memoryAt(mem[:1]); h != nil {
			mem[0] = 1
		}
	}
	require.False(t, h.Slices().Reap(theirs, 1))
	require.Greater(t, taken(t, h.Slices()), before+len(all)*Page, "it is of another job")
	require.True(t, h.Slices().Reap(theirs, 2))
	require.LessOrEqual(t, taken(t, h.Slices()), before, "all is gone")
	require.True(t, h.Slices().Reap(theirs, 2), "there is nothing any more")
	for i := range mine {
		require.EqualValues(t, 1, mine[i])
	}
	for i, mem := range all {
		if i%4 != 0 {
			FreeMemory(unsafe.Pointer(&mem[0]))
		}
	}
	other.Close()
}

// A process that is killed while it empties slices leaves what it has not emptied to another, which begins anew.
func TestReapAgain(t *testing.T) {
	h, other := sharedWithSlices(t)
	defer h.Close()
	defer other.Close()
	before := taken(t, h.Slices())
	theirs := ledgerOf(t, other)
	other.Slices().SetHome(1)
	var all [][]byte
	for range 2 * len(ledgerPage{}.words) { // two pages
		mem, err := MakeMemory(other, Page)
		require.NoError(t, err)
		all = append(all, mem)
	}
	require.Greater(t, taken(t, h.Slices()), before+len(all)*Page)
	first := other.Slices().ledger.pages[0]
	next := first.next.Swap(theirs + 1) // it lies nowhere: the first one gets no further
	require.False(t, again(t, h).Slices().Reap(theirs, 1))
	require.Equal(t, []uint64{1, 0}, []uint64{first.home.Load(), first.words[0].Load()})
	first.next.Store(next)
	require.True(t, h.Slices().Reap(theirs, 1))
	require.LessOrEqual(t, taken(t, h.Slices()), before)
	for _, mem := range all {
		FreeMemory(unsafe.Pointer(&mem[0]))
	}
}

// A job may begin to use the memory of slices while another goroutine closes the last that does: then it takes a new one.
func TestSlicesOfAClosedJob(t *testing.T) {
	old, _ := sharedWithSlices(t)
	old.Close()
	made, err := NewShared()
	require.NoError(t, err)
	defer made.Close()
	require.False(t, made.ShareSlices(old))
	require.Zero(t, old.slices.Jobs())
	require.NoError(t, made.NewSlices())
	require.Equal(t, 1, made.Slices().Jobs())
	got, err := NewShared()
	require.NoError(t, err)
	defer got.Close()
	fd, err := unix.Dup(made.Slices().fd) // it may have the number that the closed one had
	require.NoError(t, err)
	old.slices.fd = made.Slices().fd
	require.NoError(t, got.OpenSlices(fd, old))
	require.NotSame(t, old.slices, got.Slices())
	mem, err := MakeMemory(got, Page)
	require.NoError(t, err)
	require.NotZero(t, got.SpanOf(mem).Size)
	FreeMemory(unsafe.Pointer(&mem[0]))
}

// A process may have been killed at any moment, or gone wild: what its ledger says is looked at before it is believed.
func TestReapOfNonsense(t *testing.T) {
	h, other := sharedWithSlices(t)
	defer h.Close()
	defer other.Close()
	off := ledgerOf(t, other)
	head := h.Slices().own.space.next.Load()
	p := other.Slices().ledger.pages[0]
	for i, w := range []Range{RangeOf(0, headerBytes), RangeOf(0, memfdBytes-uint64(Page)), RangeOf(memfdBytes-uint64(Page), 2*uint64(Page)), ^Range(0), 1, 1 << 63} {
		p.words[i].Store(uint64(w))
	}
	p.next.Store(off) // a ring
	h.Slices().Reap(off, 0)
	require.Equal(t, head, h.Slices().own.space.next.Load(), "the header is there")
	for _, at := range []uint64{1, headerOwn, memfdBytes, 1 << 63, ^uint64(0)} {
		h.Slices().Reap(at, 0)
	}
	require.Equal(t, head, h.Slices().own.space.next.Load())
}
