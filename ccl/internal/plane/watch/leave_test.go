package watch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/proc"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
)

// leaving is rank me of all ranks of s, which leaves g; made is what the last frees.
func leaving(s *Host, g *region.Region, me int, failed bool, made Lister) *Leaver {
	return s.Leavers.Leave(Leaving{Host: s.Host, Local: g, Me: me, Ranks: []int{0, 1, 2}, HasFailed: failed, Made: made})
}

// unusedPages is how much of a host's space is free.
func unusedPages(h *shm.Host) (pages uint64) {
	for _, r := range h.Unused() {
		pages += r.Pages()
	}
	return pages
}

// The last rank of a host frees what all have shared. Ranks that have ended are counted by the others, once. One that may live keeps
// all as it is: the abort word, which it reads when it goes on, and what it may write into then.
func TestLeave(t *testing.T) {
	const (
		in        = iota
		waits     // it has left, and waits for the others
		out       // it has been counted
		ended     // its process has
		endedIn   // the same, of one that had said that it has the Comm
		parted    // its process has left the job
		lost      // it is believed to be
		lostWaits // the same, of one that has gone on, and has left
		counted   // it has ended, and another has counted it
	)
	for _, tc := range []struct {
		name   string
		failed bool
		others [2]int
		split  bool
		waits  bool
		last   bool
		count  uint64 // that the region has then, if this rank is not the last
	}{
		{"others are in", false, [2]int{in, in}, false, false, false, 1},
		{"one is in", false, [2]int{out, in}, false, false, false, 2},
		{"it is the last", false, [2]int{out, out}, false, false, true, 3},
		{"one is lost, and may live", false, [2]int{lost, out}, false, true, false, 1},
		{"failed, others are in", true, [2]int{in, in}, false, true, false, 0},
		{"failed, one is in", true, [2]int{out, in}, false, true, false, 1},
		{"failed, it is the last", true, [2]int{out, out}, false, false, true, 3},
		{"failed, one waits", true, [2]int{out, waits}, false, false, false, 2},
		{"failed, one has ended", true, [2]int{out, ended}, false, false, true, 3},
		{"failed, all others have", true, [2]int{ended, parted}, false, false, true, 3},
		{"failed, one has ended, another waits", true, [2]int{waits, ended}, false, false, false, 2},
		{"failed, one may live", true, [2]int{lost, ended}, false, true, false, 0},
		{"failed, one may live, and has closed it", true, [2]int{lostWaits, ended}, false, false, false, 2},
		{"failed, one never had it, and has ended", true, [2]int{out, ended}, true, true, false, 1},
		{"failed, one had it, and has ended", true, [2]int{out, endedIn}, true, false, true, 3},
		{"failed, one has been counted", true, [2]int{counted, out}, false, false, true, 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := sharing(t, 3)
			h, g, pulses := s.Host, regionOn(t, s), s.Processes.pulses
			_, err := h.View(g.Off, region.Bytes(3)) // of this test
			require.NoError(t, err)
			for i, how := range tc.others {
				r := i + 1
				switch how {
				case waits:
					g.Out(r).Store(region.WaitsOut)
				case out, counted:
					g.Out(r).Store(region.IsOut)
					g.Left().Add(1)
				case endedIn:
					g.Out(r).Store(region.IsIn)
				case parted:
					pulses[r].left.Store(1)
				case lostWaits:
					g.Out(r).Store(region.WaitsOut)
				}
				if how == lost || how == lostWaits {
					s.Job.World.Lose(r, false)
				}
				if how == ended || how == endedIn || how == counted {
					pulses[r].death.Store(proc.OwnerDied)
				}
			}
			g.Abort().Store(7)
			before, listed := unusedPages(h), 0
			leaver := s.Leavers.Leave(Leaving{Host: h, Local: g, Ranks: []int{0, 1, 2}, Split: tc.split, HasFailed: tc.failed,
				Made: func(*shm.Host, *region.Region) []shm.Place {
					listed++
					return []shm.Place{shm.PlaceAt(g.Off, region.Bytes(3))}
				}})
			require.Equal(t, []bool{tc.last, tc.waits}, []bool{leaver.Last(), leaver.waits})
			require.Equal(t, tc.count, g.Left().Load())
			leaver.Free()
			require.Equal(t, tc.waits, s.Leavers.n.Load() == 1)
			require.Equal(t, tc.last, unusedPages(h) > before)
			if tc.last {
				require.Equal(t, 1, listed)
				require.Zero(t, g.Left().Load(), "it has been emptied")
			} else {
				require.Zero(t, listed)
				require.EqualValues(t, 7, g.Abort().Load(), "it is there")
			}
			h.Drop(shm.PlaceAt(g.Off, region.Bytes(3)))
		})
	}
}

// A rank that waits goes on when it is known that the others are gone: at the monitor's next look, or when another Comm is closed.
func TestLeaverWaits(t *testing.T) {
	s := sharing(t, 3)
	h, g := s.Host, regionOn(t, s)
	before := unusedPages(h)
	place := shm.PlaceAt(g.Off, region.Bytes(3))
	leaver := leaving(s, g, 0, true, func(*shm.Host, *region.Region) []shm.Place { return []shm.Place{place} })
	leaver.Free()
	s.Leavers.Settle()
	require.Equal(t, before, unusedPages(h))
	g.Out(1).Store(region.WaitsOut)
	s.Leavers.Settle()
	require.EqualValues(t, 1, s.Leavers.n.Load(), "rank 2 is there")
	s.Processes.pulses[1].death.Store(proc.OwnerDied) // while it waited
	s.Processes.pulses[2].death.Store(proc.OwnerDied)
	s.Leavers.Settle()
	require.Zero(t, s.Leavers.n.Load())
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))

	g = regionOn(t, s) // a process that leaves the job waits no more
	s.Processes.pulses[2].death.Store(0)
	leaver = leaving(s, g, 0, true, func(*shm.Host, *region.Region) []shm.Place { t.Error("it is not the last"); return nil })
	leaver.Free()
	require.EqualValues(t, 1, s.Leavers.n.Load())
	s.Leavers.GiveUp()
	s.Leavers.Settle()
	require.Zero(t, s.Leavers.n.Load())
}

// A Comm that has failed while all ranks are there goes back when all have closed it, and also if one of them ends before it has.
func TestLeaveWithoutLoss(t *testing.T) {
	s := sharing(t, 3)
	h, g := s.Host, regionOn(t, s)
	_, err := h.View(g.Off, region.Bytes(3)) // of this test
	require.NoError(t, err)
	before := unusedPages(h)
	place := shm.PlaceAt(g.Off, region.Bytes(3))
	leaver := leaving(s, g, 0, true, func(*shm.Host, *region.Region) []shm.Place { return []shm.Place{place} })
	require.True(t, leaver.waits)
	leaver.Free()
	g.Out(1).Store(region.WaitsOut)
	s.Leavers.Settle()
	require.Equal(t, before, unusedPages(h), "rank 2 is there")
	s.Processes.pulses[2].death.Store(proc.OwnerDied)
	s.Leavers.Settle()
	require.Zero(t, s.Leavers.n.Load(), "its end is seen, though nobody has believed it")
	require.EqualValues(t, 2, g.Left().Load(), "rank 1 counts itself")
	h.Drop(place)
}

// A rank that the others have given up is there until it has closed the Comm: it counts itself as any other does, and may be the last.
func TestLeaverThatIsLost(t *testing.T) {
	s := sharing(t, 3)
	h, g := s.Host, regionOn(t, s)
	before := unusedPages(h)
	place := shm.PlaceAt(g.Off, region.Bytes(3))
	s.Job.World.Lose(0, false)
	leaver := leaving(s, g, 0, false, func(*shm.Host, *region.Region) []shm.Place { return []shm.Place{place} })
	require.True(t, leaver.waits)
	require.EqualValues(t, region.ListedOut, g.Out(0).Load())
	leaver.Free()
	for r := 1; r < 3; r++ {
		s.Processes.pulses[r].left.Store(1)
	}
	s.Leavers.Settle()
	require.Zero(t, s.Leavers.n.Load())
	require.Equal(t, before+place.Size/uint64(shm.Page), unusedPages(h))
}
