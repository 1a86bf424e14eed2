package ccltest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"sync"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// crew is the ranks of one process, for which its one bootstrap speaks.
type crew struct {
	world   *world
	process *boot.Boot
	ranks   []int

	mu    sync.Mutex
	round *round
}

// newCrew makes the ranks of the process that b is.
func newCrew(w *world, b *boot.Boot) []ccl.Bootstrap {
	c := &crew{world: w, process: b}
	for r := range w.n {
		if w.process(r) == b.Rank() {
			c.ranks = append(c.ranks, r)
		}
	}
	c.round = newRound(len(c.ranks))
	seats := make([]ccl.Bootstrap, len(c.ranks))
	for i := range c.ranks {
		seats[i] = &seat{c, i}
	}
	return seats
}

// round is one AllGather: the last rank to come speaks for all.
type round struct {
	mine    [][]byte
	arrived int
	done    chan struct{} // closed once all and err are there
	all     [][]byte
	err     error
}

func newRound(n int) *round { return &round{mine: make([][]byte, n), done: make(chan struct{})} }

// seat is the ccl.Bootstrap of one rank.
type seat struct {
	*crew
	i int
}

func (s *seat) Rank() int { return s.ranks[s.i] }

func (s *seat) Size() int { return s.world.n }

func (s *seat) Secret() []byte { return s.process.Secret() }

func (s *seat) Addr() netip.Addr { return s.process.Addr() }

func (s *seat) HostID() string { return s.world.hostID(s.Rank()) }

func (s *seat) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	s.mu.Lock()
	r := s.round
	r.mine[s.i] = mine
	r.arrived++
	last := r.arrived == len(r.mine)
	if last {
		s.round = newRound(len(r.mine))
	}
	s.mu.Unlock()
	if last {
		r.all, r.err = s.gather(ctx, r.mine)
		close(r.done)
	}
	select {
	case <-r.done:
		return r.all, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// gather swaps the values of this process's ranks for those of all ranks.
func (c *crew) gather(ctx context.Context, mine [][]byte) ([][]byte, error) {
	packed, err := json.Marshal(mine)
	if err != nil {
		return nil, err
	}
	said, err := c.process.AllGather(ctx, packed)
	if err != nil {
		return nil, err
	}
	var all [][]byte // processes have blocks of ranks, so their order is that of the ranks
	for p, s := range said {
		var values [][]byte
		if err := json.Unmarshal(s, &values); err != nil {
			return nil, fmt.Errorf("process %d: %w", p, err)
		}
		all = append(all, values...)
	}
	if len(all) != c.world.n {
		return nil, fmt.Errorf("%d values for %d ranks", len(all), c.world.n)
	}
	return all, nil
}
