package reach

import (
	"errors"
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

// ranksOn are n ranks of this process on host h.
func ranksOn(t *testing.T, n int, h *shm.Host) []*Reach {
	t.Helper()
	j := plane.EnterJob(t.Name(), 0)
	s := j.Site(0)
	s.Topo, s.Host = plane.Topology(make([]int, n), 1), h
	off, err := h.Alloc(region.Bytes(n))
	require.NoError(t, err)
	mem, err := h.View(off, region.Bytes(n))
	require.NoError(t, err)
	all := make([]*Reach, n)
	for r := range all {
		all[r] = &Reach{Pids: make([]int32, n), All: !h.Shared()}
		all[r].Member.Init(s, plane.WorldID, plane.Members{Stride: 1}, s.Topo, r, region.New(off, mem, n), plane.Options{})
		all[r].Enlist()
	}
	t.Cleanup(func() {
		for _, c := range all {
			j.Remove(&c.Member)
		}
		s.Host = plane.PrivateHost()
		j.Leave()
	})
	return all
}

// Memory of other processes is read where it pays, in all calls among ranks with a core each, unless the user says otherwise.
func TestWouldRead(t *testing.T) {
	defer func(asked string, cpu tuning.Family) { askedToRead, tuning.CPU = asked, cpu }(askedToRead, tuning.CPU)
	c := ranksOn(t, 1, plane.PrivateHost())[0]
	cores := c.Site.Host.Processors()
	const from = 1000
	for _, tc := range []struct {
		asked      string
		pays       bool // in all calls
		moved      int
		ranks      int
		all, moves bool
		least      int // bytes of a message that is read; 0: none is
	}{
		{"", true, 0, cores, true, true, 1},
		{"", true, 0, cores + 1, false, false, 0},
		{"", true, from, cores + 1, false, true, from},
		{"", false, 0, cores, false, false, 0},
		{"", false, from, cores, false, true, from},
		{"1", false, 0, cores + 1, true, true, 1},
		{"0", true, from, cores, false, false, 0},
	} {
		askedToRead, tuning.CPU.ReadOthers, tuning.CPU.ReadMovedFrom, c.N = tc.asked, tc.pays, tc.moved, tc.ranks
		all, moves := c.WouldRead()
		assert.Equal(t, []bool{tc.all, tc.moves}, []bool{all, moves}, "%+v", tc)
		for _, n := range []int{1, from - 1, from, 1 << 30} {
			assert.Equal(t, tc.least > 0 && n >= tc.least, c.WouldReadMessage(n), "%+v, %d bytes", tc, n)
		}
	}
	c.N = 1
}

// A process is the right one if it has the number that was told, where it was told.
func TestReadable(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is read on Linux alone")
	}
	at := uint64(uintptr(unsafe.Pointer(&Secret)))
	for _, tc := range []struct {
		name       string
		pid        int32
		at, number uint64
		want       bool
	}{
		{"this process", int32(OwnPID), at, Secret, true},
		{"another number", int32(OwnPID), at, Secret + 1, false},
		{"nothing is there", int32(OwnPID), 8, Secret, false},
		{"no process", 1<<31 - 1, at, Secret, false},
	} {
		assert.Equal(t, tc.want, Readable(tc.pid, tc.at, tc.number), tc.name)
	}
}

// Memory of this process is touched where it lies, and that of others copied; either way it is what lies at the offset, in
// pieces where it is long.
func TestSourceAndFill(t *testing.T) {
	const n = 2*tuning.PreemptPiece + 1000
	mem := make([]byte, n)
	for i := range mem {
		mem[i] = byte(i%251 + i>>16)
	}
	for _, tc := range []struct {
		name string
		pid  int32
	}{{"this process", 0}, {"another", int32(OwnPID)}} {
		t.Run(tc.name, func(t *testing.T) {
			if tc.pid != 0 && runtime.GOOS != "linux" {
				t.Skip("memory is read on Linux alone")
			}
			c := ranksOn(t, 2, plane.PrivateHost())[0]
			c.Pids[1] = tc.pid
			p := c.Site.Host.SpanOf(mem)
			at, f := c.Touch(1, &p)
			require.Nil(t, f)
			require.Equal(t, tc.pid == 0, at == unsafe.Pointer(&mem[0]))
			require.Equal(t, tc.pid != 0, at == nil)
			require.Equal(t, tc.pid == 0, c.Local.Touches(0).Load() == 1, "it says that it touches memory of others")

			buf := make([]byte, 100)
			got, f := c.Source(t.Context(), 1, &p, 500, 100, buf)
			require.Nil(t, f)
			require.Equal(t, mem[500:600], unsafe.Slice((*byte)(got), 100))
			require.Equal(t, tc.pid != 0, got == unsafe.Pointer(&buf[0]))

			dst := make([]byte, n-300)
			require.Nil(t, c.Fill(t.Context(), 1, &p, 300, dst))
			require.Equal(t, mem[300:], dst)
			require.Zero(t, c.Local.Touches(0).Load(), "and that it does not any more")
			touched := c.Untidy
			c.Untidy = false
			require.Nil(t, c.Fill(t.Context(), 1, &p, n, nil), "an empty block at the end of what another has")
			require.False(t, c.Untidy, "it is not touched: no pointer may point to there")
			require.Equal(t, tc.pid == 0, touched)
			none := shm.Span{}
			at, f = c.Touch(1, &none)
			require.Nil(t, f)
			require.Nil(t, at, "an empty operand is nowhere")
			require.Zero(t, c.Local.Touches(0).Load())
		})
	}
}

// What cannot be read fails the Comm, in the name of the rank whose memory it is; a cause that is known by then goes first.
func TestUnread(t *testing.T) {
	all := ranksOn(t, 3, plane.PrivateHost())
	why := errors.New("no such process")
	f := all[0].Unread(t.Context(), 2, why)
	require.NotNil(t, f)
	assert.Equal(t, call.Backend, f.Code)
	assert.Equal(t, 2, f.Peer)
	assert.EqualError(t, f, "the memory of rank 2 cannot be read: no such process")
	assert.ErrorIs(t, f, why)

}

// A rank touches nothing after its Comm has failed, and says why.
func TestInterruptedNow(t *testing.T) {
	c := ranksOn(t, 2, plane.PrivateHost())[0]
	require.Nil(t, c.InterruptedNow())
	cause := call.NewFault(call.RankLost, 1, "its process ended")
	require.True(t, c.FailHere(cause))
	assert.Same(t, cause, c.InterruptedNow())
	assert.Same(t, cause, c.Unread(t.Context(), 1, errors.New("it is not there")))
	_, f := c.Here(&shm.Span{At: 4096})
	assert.Same(t, cause, f, "nothing is touched after a failure")
}
