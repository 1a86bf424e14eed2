package reach

import (
	"runtime"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
)

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
func TestReadAndFill(t *testing.T) {
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
			p := c.rank.Site.Here.Host.SpanOf(mem)
			s, f := c.Find(1, &p)
			require.Nil(t, f)
			require.Equal(t, tc.pid == 0, s.here == unsafe.Pointer(&mem[0]))
			require.Equal(t, tc.pid != 0, s.here == nil)
			require.Equal(t, tc.pid == 0, c.local.Touches(0).Load() == 1, "it says that it touches memory of others")

			buf := make([]byte, 100)
			two := []Source{s.At(500), Own(unsafe.Pointer(&mem[7]))}
			require.Nil(t, c.Read(t.Context(), two, 50, buf, 50, func(at []unsafe.Pointer) {
				require.Equal(t, mem[500:550], unsafe.Slice((*byte)(at[0]), 50))
				require.Equal(t, unsafe.Pointer(&mem[7]), at[1])
				require.Equal(t, tc.pid != 0, at[0] == unsafe.Pointer(&buf[0]))
			}))

			dst := make([]byte, n-300)
			require.Nil(t, c.Fill(t.Context(), 1, &p, 300, dst))
			require.Equal(t, mem[300:], dst)
			require.Zero(t, c.local.Touches(0).Load(), "and that it does not any more")
			touched := c.Untidy
			c.Untidy = false
			require.Nil(t, c.Fill(t.Context(), 1, &p, n, nil), "an empty block at the end of what another has")
			require.False(t, c.Untidy, "it is not touched: no pointer may point to there")
			require.Equal(t, tc.pid == 0, touched)
			none := shm.Span{}
			s, f = c.Find(1, &none)
			require.Nil(t, f)
			require.Nil(t, s.here, "an empty operand is nowhere")
			require.Zero(t, c.local.Touches(0).Load())
		})
	}
}

// What was read counts only if nothing was given up by then: between any rank's failure and the look, its memory may have changed.
func TestReadLooksAfterwards(t *testing.T) {
	for _, pid := range []int32{0, int32(OwnPID)} {
		if pid != 0 && runtime.GOOS != "linux" {
			continue
		}
		all := ranksOn(t, 2, plane.PrivateHost())
		c, mem := all[0], []byte{1, 2, 3, 4}
		c.Pids[1] = pid
		p := c.rank.Site.Here.Host.SpanOf(mem)
		s, f := c.Find(1, &p)
		require.Nil(t, f)
		cause := call.NewFault(call.Canceled, 1, "on purpose")
		f = c.Read(t.Context(), []Source{s}, 4, make([]byte, 4), 4, func([]unsafe.Pointer) {
			require.True(t, all[1].rank.FailHere(cause))
			c.rank.FailHere(cause)
		})
		require.Same(t, cause, f)
	}
}

// Memory that the kernel refuses to read fails nothing where the message can go another way.
func TestRefused(t *testing.T) {
	c := ranksOn(t, 2, plane.PrivateHost())[0]
	s, f := c.Offered(1, &shm.Span{At: 8}, false, int32(OwnPID))
	require.Nil(t, f)
	require.Same(t, Refused, c.FillFrom(t.Context(), s, make([]byte, 8)))
	require.Nil(t, c.rank.Fate.Cause(), "the Comm goes on")
}
