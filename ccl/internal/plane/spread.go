package plane

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/proc"
)

// spread is where a rank runs, of those that outnumber the processors of their host. Each tells the
// others through the region, when it waits, and two things follow:
//
// A rank that gives way to one that has nothing to do either pays for two switches, which take
// longer than most waits. So it does not where all ranks of its processor have posted the round
// that it is in, unless the wait is a long one.
//
// The kernel often leaves three ranks on one processor and one on another, for as long as a job
// lasts: what gives way again and again looks alike everywhere. A call then takes as many switches
// as the fullest processor has ranks. So a rank of a processor with more than its share moves to
// one that has two less, if no other programs compute: the kernel knows where.
type spread struct {
	core int // this rank's processor
	laps int // until the rank looks where the others are
	gap  int // laps between two such looks
}

const (
	lapsAlone = 32      // laps of a wait without giving way: some 3 microseconds
	lapsFresh = 8       // laps after which a rank asks where it runs, which is a system call
	gapLeast  = 64      // laps
	gapMost   = 1 << 14 // if the kernel moves ranks back again and again
	coresMost = 256     // ranks of processors with higher numbers stay where they are
)

// staysOn reports whether this rank, of those that outnumber their processors, need not give way in
// that lap. It looks where it runs.
func (c *Member) staysOn(lap int) bool {
	if !c.Share.Host.Shared() || c.Site.Job.Life.here.Load() > 1 {
		return false
	}
	c.Standing.spread.standOn(&c.Standing)
	return lap < lapsAlone && c.Standing.spread.waitsAlone(&c.Order, &c.Current)
}

// standOn finds out where the rank runs, and moves it if that is better.
func (s *spread) standOn(c *Standing) {
	s.laps--
	if s.laps <= 0 || s.laps%lapsFresh == 0 {
		s.runsOn(c.share, proc.Core())
	}
	if s.laps > 0 {
		return
	}
	s.gap = max(s.gap/2, gapLeast)
	var ranks [coresMost]uint16
	if most := s.tooMany(c.share, c.share.Host.Processors(), &ranks); most > 0 &&
		!c.Site.Job.Time.Yielding.late(c.Site.Job.Time.Coarse.Exact()) {
		to := proc.Elsewhere(func(core int) bool { return core < coresMost && int(ranks[core])+2 <= most })
		if to >= 0 {
			s.runsOn(c.share, to)
			s.gap = min(4*s.gap, gapMost)
		}
	}
	s.laps = s.gap
}

// runsOn tells the other ranks of the host of this one's processor.
func (s *spread) runsOn(c *Share, core int) {
	s.core = core
	if p := c.Local.Core(c.Me); p.Load() != uint64(1+core) {
		p.Store(uint64(1 + core))
	}
}

// waitsAlone reports whether no other rank of this one's processor has anything to do, as far as rounds tell.
func (s *spread) waitsAlone(c *Order, now *Current) bool {
	if !now.lockstep {
		return false // calls of pairs have no rounds
	}
	here := uint64(1 + s.core)
	for i := 1; i < c.share.N; i++ {
		r := (c.share.Me + i) % c.share.N
		if c.share.Local.Core(r).Load() == here &&
			int32(uint32(atomic.LoadUint64(c.share.Local.Flag(r, c.Round))>>32)-c.Round) < 0 {
			return false
		}
	}
	return true
}

// tooMany counts the ranks of each processor, and returns how many run on this one's if they are
// more than their share and it is for this one to leave, else 0. Of several that had better leave
// the same processor, the first does.
func (s *spread) tooMany(c *Share, processors int, ranks *[coresMost]uint16) int {
	for r := range c.N {
		at := int(c.Local.Core(r).Load()) - 1
		if at < 0 || at >= coresMost || at == s.core && r < c.Me {
			return 0
		}
		ranks[at]++
	}
	if here := int(ranks[s.core]); here > (c.N+processors-1)/processors {
		return here
	}
	return 0
}
