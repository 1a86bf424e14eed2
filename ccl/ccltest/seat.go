package ccltest

import (
	"context"
	"net/netip"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/goranks"
)

// seat is the ccl.Bootstrap of one rank of a process, for which the process's own speaks.
type seat struct {
	world   *world
	process *boot.Boot
	ranks   *goranks.Ranks
	i       int // among the process's ranks
	rank    int
}

// newSeats makes the ranks of the process that b is. Processes have blocks of ranks, so their order
// is that of the ranks.
func newSeats(w *world, b *boot.Boot) []ccl.Bootstrap {
	ranks := make([][]int, b.Size())
	for r := range w.n {
		ranks[w.process(r)] = append(ranks[w.process(r)], r)
	}
	mine := ranks[b.Rank()]
	c := goranks.New(len(mine), func(p int) int { return len(ranks[p]) }, b.AllGather)
	seats := make([]ccl.Bootstrap, len(mine))
	for i, r := range mine {
		seats[i] = &seat{w, b, c, i, r}
	}
	return seats
}

func (s *seat) Rank() int { return s.rank }

func (s *seat) Size() int { return s.world.n }

func (s *seat) Secret() []byte { return s.process.Secret() }

func (s *seat) Addr() netip.Addr { return s.process.Addr() }

func (s *seat) HostID() string { return s.world.hostID(s.rank) }

func (s *seat) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	return s.ranks.AllGather(ctx, s.i, mine)
}
