package plane

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// asAnother is rank 1 of c's Comm, as the process beside c's has it.
func asAnother(t *testing.T, c *Member) *Member {
	t.Helper()
	fd, err := unix.Dup(c.Site.Here.Host.Descriptor())
	require.NoError(t, err)
	h, err := shm.Open(fd)
	require.NoError(t, err)
	fd, err = unix.Dup(c.Site.Here.Host.Slices().Descriptor())
	require.NoError(t, err)
	require.NoError(t, h.OpenSlices(fd, nil))
	j := EnterJob(t.Name()+", another", 0)
	t.Cleanup(j.Leave)
	s := j.Site(0)
	j.World.Topo, s.Here.Procs, s.Here.Mine = c.Site.Job.World.Topo, c.Site.Here.Procs, 1
	require.NoError(t, s.Here.TakeHost(h))
	off := c.Share.Local.Off
	mem, err := h.View(off, region.Bytes(3))
	require.NoError(t, err)
	of := new(Member)
	of.Init(s, c.Group.ID(), group.Members{Stride: 1}, j.World.Topo, 1, region.New(off, mem, 3), Options{})
	of.Enlist()
	t.Cleanup(func() { j.Remove(of) })
	return of
}

// failedBeside is a Comm of three processes that has failed: rank 0, whose process this is, and rank 1.
func failedBeside(t *testing.T) (c, another *Member) {
	t.Helper()
	c = besideTwo(t)
	another = asAnother(t, c)
	for _, c := range []*Member{c, another} {
		require.True(t, c.FailHere(call.NewFault(call.RankLost, 2, "on purpose")))
	}
	return c, another
}

// leaves has a rank close its Comm.
func leaves(c *Member) *Leaver {
	l := Leave(c, false, func(_ *shm.Host, g *region.Region) []shm.Place {
		return []shm.Place{shm.PlaceAt(g.Off, region.Bytes(g.N))}
	})
	c.Share.Drop()
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
				s, h, place := c.Site, c.Site.Here.Host, shm.PlaceAt(c.Share.Local.Off, region.Bytes(3))
				pulses := s.Here.processes.pulses
				if last {
					pulses[2].death.Store(proc.OwnerDied)
				}
				before := unusedPages(h)
				late := leaves(another)
				require.True(t, late.waits, "the first rank has not closed it")
				require.Equal(t, !last, leaves(c).waits, "all others have closed it")
				look := func() {
					s.leavers.settle()
					completeExits(s)
				}
				look()
				require.Equal(t, before, unusedPages(h), "it has not looked, and lives")
				if how == "it is killed" {
					pulses[1].death.Store(proc.OwnerDied)
				} else {
					another.Site.leavers.giveUp()
					pulses[1].left.Store(1)
				}
				look()
				if !last {
					require.Equal(t, before, unusedPages(h), "the last rank has not closed it")
					pulses[2].death.Store(proc.OwnerDied)
					look()
				}
				require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))
				another.Site.leavers.settle() // as a thread of it may that ends a little later
				look()
				require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h), "once")
			})
		}
	}
}

// A process that is there counts its rank itself, and leaves no entry behind; nobody counts the rank twice.
func TestExitOfTheLiving(t *testing.T) {
	c, another := failedBeside(t)
	s, h, place := c.Site, c.Site.Here.Host, shm.PlaceAt(c.Share.Local.Off, region.Bytes(3))
	s.Here.processes.pulses[2].death.Store(proc.OwnerDied)
	before := unusedPages(h)
	require.True(t, leaves(another).waits)
	require.False(t, leaves(c).waits)
	exits := another.Site.Here.ownExits()
	require.EqualValues(t, exitOf(another.Share.Local, 1), exits[0].Load())
	another.Site.leavers.settle()
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))
	require.Zero(t, exits[0].Load())
	s.Here.processes.pulses[1].death.Store(proc.OwnerDied)
	completeExits(s)
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h), "once")
}

// Where a process has more ranks that wait than entries, those are counted by ranks that wait as well.
func TestMoreWaitThanAreListed(t *testing.T) {
	c, another := failedBeside(t)
	s, h, place := c.Site, c.Site.Here.Host, shm.PlaceAt(c.Share.Local.Off, region.Bytes(3))
	exits := another.Site.Here.ownExits()
	for i := range exits {
		exits[i].Store(uint64(exitOf(another.Share.Local, 1)))
	}
	before := unusedPages(h)
	require.True(t, leaves(another).waits)
	require.EqualValues(t, region.WaitsOut, c.Share.Local.Out(1).Load())
	require.True(t, leaves(c).waits)
	for i := range exits {
		exits[i].Store(0)
	}
	for r := 1; r < 3; r++ {
		s.Here.processes.pulses[r].death.Store(proc.OwnerDied)
	}
	s.leavers.settle()
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))
}

// A pending exit names any region of a host.
func TestPendingExitNames(t *testing.T) {
	for _, g := range []region.Region{{Off: uint64(shm.Page), N: 1}, {Off: 1<<40 - uint64(shm.Page), N: 1<<exitBits - 1}} {
		off, n, me := exitOf(&g, g.N-1).region()
		require.Equal(t, []any{g.Off, g.N, g.N - 1}, []any{off, n, me})
	}
}
