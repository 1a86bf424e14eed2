package plane

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/plane/gone"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// What a process had that has ended is emptied when no process of the host can be in a call with it any more: each has failed its Comms,
// has left, or has ended, too. Until then, what it has offered counts.
func TestReap(t *testing.T) {
	for _, tc := range []struct {
		name   string
		leaves bool
		last   func(s *Site) // the step after which it is emptied
	}{
		{"the other has parted, too", false, func(s *Site) { s.Here.processes.parted[1].Or(1 << 2) }},
		{"the other has left", false, func(s *Site) { s.Here.processes.pulses[2].left.Store(1) }},
		{"the other has ended", false, func(s *Site) { s.Here.processes.pulses[2].death.Store(proc.OwnerDied) }},
		{"the other has parted, and this one leaves the job", true, func(s *Site) {
			s.Here.processes.parted[1].Store(1 << 2)
			s.Job.World.Ranks = gone.Ranks{Topo: s.Job.World.Topo} // it does not matter any more
			later, _ := shm.NewShared()
			later.ShareSlices(s.Here.Host)
			defer later.Close()
			before := s.Here.Host.Slices().SetHome(7) // this process is in the job that has grown out of this one
			reapLeaving(s)
			s.Here.Host.Slices().SetHome(before)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := besideTwo(t)
			s := c.Site
			h, p := s.Here.Host.Slices(), &s.Here.processes
			off, err := h.Alloc(4 << 10) // a ledger of nothing, which has to be one of this job
			require.NoError(t, err)
			mem, err := h.View(off, 4<<10)
			require.NoError(t, err)
			home := mem[8:16]
			copy(home, numberOf(s))
			p.pulses[1].own.Store(off)
			look := func() (emptied bool) {
				reapEnded(s)
				s.Job.Life.Wg.Wait()
				return p.pulses[1].own.Load() == 0
			}
			require.False(t, look(), "it lives")
			p.pulses[1].death.Store(proc.OwnerDied)
			require.False(t, look(), "it is not believed")
			s.Job.World.Lose(1, true)
			require.False(t, look(), "a call may be under way")
			require.Zero(t, p.parted[1].Load())
			require.True(t, c.FailHere(call.NewFault(call.RankLost, 1, "on purpose")))
			later, err := shm.NewShared()
			require.NoError(t, err)
			require.True(t, later.ShareSlices(s.Here.Host))
			require.False(t, look(), "this process is in a job that has grown out of this one")
			require.Zero(t, p.parted[1].Load())
			later.Close()
			require.False(t, look(), "another process lives")
			require.EqualValues(t, 1, p.parted[1].Load(), "this one has parted from it")
			require.NotEqual(t, make([]byte, 8), home)
			if !tc.leaves {
				copy(home, "another ")
				tc.last(s)
				require.False(t, look(), "its slices belong to another job")
				copy(home, numberOf(s))
			} else {
				tc.last(s)
			}
			require.True(t, look())
			require.Equal(t, make([]byte, 8), home)
			require.True(t, look())
			h.Drop(shm.PlaceAt(off, 4<<10))
		})
	}
}

// numberOf is the job's number on this host, as it lies in memory.
func numberOf(s *Site) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&boardOf(s.Here.Host).number)), 8)
}
