package watch

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// asAnother is s as the process of rank 1 has it.
func asAnother(t *testing.T, s *Host) *Host {
	t.Helper()
	fd, err := unix.Dup(s.Host.Descriptor())
	require.NoError(t, err)
	h, err := shm.Open(fd)
	require.NoError(t, err)
	fd, err = unix.Dup(s.Host.Slices().Descriptor())
	require.NoError(t, err)
	require.NoError(t, h.OpenSlices(fd, nil))
	of := hostOf(t, 3, 0)
	of.Mine = 1
	require.NoError(t, of.TakeHost(h))
	return of
}

// end is one rank's end of a Comm of three processes that has failed.
type end struct {
	*Host
	g  *region.Region
	me int
}

// failedBeside are the ends of rank 0, whose process this is, and of rank 1.
func failedBeside(t *testing.T) (c, another end) {
	t.Helper()
	s := sharing(t, 3)
	g, beside := regionOn(t, s), asAnother(t, s)
	return end{s, g, 0}, end{beside, regionAt(t, beside.Host, g.Off, 3), 1}
}

// leaves has a rank close its Comm.
func leaves(c end) *Leaver {
	l := leaving(c.Host, c.g, c.me, true, func(_ *shm.Host, g *region.Region) []shm.Place {
		return []shm.Place{shm.PlaceAt(g.Off, region.Bytes(g.N))}
	})
	l.Free()
	return l
}

// A rank that has closed a failed Comm is counted by others if its process ends before it has looked again: also when it is the only one
// left, so that no rank of the Comm looks any more.
func TestPendingExit(t *testing.T) {
	for _, how := range []string{"it is killed", "it leaves the job"} {
		for _, last := range []bool{true, false} {
			t.Run(how+map[bool]string{true: ", the last", false: ", before another"}[last], func(t *testing.T) {
				c, another := failedBeside(t)
				s, h, place := c, c.Host.Host, shm.PlaceAt(c.g.Off, region.Bytes(3))
				pulses := s.Processes.pulses
				if last {
					pulses[2].death.Store(proc.OwnerDied)
				}
				before := unusedPages(h)
				late := leaves(another)
				require.True(t, late.waits, "the first rank has not closed it")
				require.Equal(t, !last, leaves(c).waits, "all others have closed it")
				look := func() {
					s.Leavers.Settle()
					s.Leavers.CompleteExits()
				}
				look()
				require.Equal(t, before, unusedPages(h), "it has not looked, and lives")
				if how == "it is killed" {
					pulses[1].death.Store(proc.OwnerDied)
				} else {
					another.Leavers.GiveUp()
					pulses[1].left.Store(1)
				}
				look()
				if !last {
					require.Equal(t, before, unusedPages(h), "the last rank has not closed it")
					pulses[2].death.Store(proc.OwnerDied)
					look()
				}
				require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))
				another.Leavers.Settle() // as a thread of it may that ends a little later
				look()
				require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h), "once")
			})
		}
	}
}

// A process that is there counts its rank itself, and leaves no entry behind; nobody counts the rank twice.
func TestExitOfTheLiving(t *testing.T) {
	c, another := failedBeside(t)
	s, h, place := c, c.Host.Host, shm.PlaceAt(c.g.Off, region.Bytes(3))
	s.Processes.pulses[2].death.Store(proc.OwnerDied)
	before := unusedPages(h)
	require.True(t, leaves(another).waits)
	require.False(t, leaves(c).waits)
	exits := another.ownExits()
	require.EqualValues(t, exitOf(another.g, 1), exits[0].Load())
	another.Leavers.Settle()
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))
	require.Zero(t, exits[0].Load())
	s.Processes.pulses[1].death.Store(proc.OwnerDied)
	s.Leavers.CompleteExits()
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h), "once")
}

// Where a process has more ranks that wait than entries, those are counted by ranks that wait as well.
func TestMoreWaitThanAreListed(t *testing.T) {
	c, another := failedBeside(t)
	s, h, place := c, c.Host.Host, shm.PlaceAt(c.g.Off, region.Bytes(3))
	exits := another.ownExits()
	for i := range exits {
		exits[i].Store(uint64(exitOf(another.g, 1)))
	}
	before := unusedPages(h)
	require.True(t, leaves(another).waits)
	require.EqualValues(t, region.WaitsOut, c.g.Out(1).Load())
	require.True(t, leaves(c).waits)
	for i := range exits {
		exits[i].Store(0)
	}
	for r := 1; r < 3; r++ {
		s.Processes.pulses[r].death.Store(proc.OwnerDied)
	}
	s.Leavers.Settle()
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))
}

// A pending exit names any region of a host.
func TestPendingExitNames(t *testing.T) {
	for _, g := range []region.Region{{Off: uint64(shm.Page), N: 1}, {Off: 1<<40 - uint64(shm.Page), N: 1<<exitBits - 1}} {
		off, n, me := exitOf(&g, g.N-1).region()
		require.Equal(t, []any{g.Off, g.N, g.N - 1}, []any{off, n, me})
	}
}
