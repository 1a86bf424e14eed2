package watch

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

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
		last   func(s *Host) // the step after which it is emptied
	}{
		{"the other has parted, too", false, func(s *Host) { s.Processes.parted[1].Or(1 << 2) }},
		{"the other has left", false, func(s *Host) { s.Processes.pulses[2].left.Store(1) }},
		{"the other has ended", false, func(s *Host) { s.Processes.pulses[2].death.Store(proc.OwnerDied) }},
		{"the other has parted, and this one leaves the job", true, func(s *Host) {
			s.Processes.parted[1].Store(1 << 2)
			s.Job.World.Ranks = gone.Ranks{Topo: s.Job.World.Topo} // it does not matter any more
			later, _ := shm.NewShared()
			later.ShareSlices(s.Host)
			defer later.Close()
			before := s.Host.Slices().SetHome(7) // this process is in the job that has grown out of this one
			s.Processes.Reap(s.Processes.PartFrom(true, nil))
			s.Host.Slices().SetHome(before)
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := sharing(t, 3)
			h, p := s.Host.Slices(), &s.Processes
			off, err := h.Alloc(4 << 10) // a ledger of nothing, which has to be one of this job
			require.NoError(t, err)
			mem, err := h.View(off, 4<<10)
			require.NoError(t, err)
			home := mem[8:16]
			copy(home, numberOf(s))
			p.pulses[1].own.Store(off)
			parted := false
			look := func() (emptied bool) {
				s.Processes.Reap(s.Processes.PartFrom(false, func(ranks []int) bool {
					require.Equal(t, []int{1}, ranks)
					return parted
				}))
				return p.pulses[1].own.Load() == 0
			}
			require.False(t, look(), "it lives")
			p.pulses[1].death.Store(proc.OwnerDied)
			require.False(t, look(), "a call may be under way")
			require.Zero(t, p.parted[1].Load())
			parted = true
			later, err := shm.NewShared()
			require.NoError(t, err)
			require.True(t, later.ShareSlices(s.Host))
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
func numberOf(s *Host) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&BoardOf(s.Host).number)), 8)
}
