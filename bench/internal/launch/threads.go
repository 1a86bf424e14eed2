// Package launch makes ranks: several in one process, and processes on this
// machine.
package launch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/crew"
)

// Threads makes n ranks of this process, which is rank b of a job of processes:
// ranks b*n to b*n+n-1 of a job n times as large. The process's one bootstrap
// carries them all.
func Threads(b ccl.Bootstrap, n int) []ccl.Bootstrap {
	team := &team{b, n, crew.New(n, func(int) int { return n }, b.AllGather)}
	ranks := make([]ccl.Bootstrap, n)
	for i := range ranks {
		ranks[i] = &thread{team, i}
	}
	return ranks
}

// team is what the ranks of a process share.
type team struct {
	process ccl.Bootstrap
	n       int
	crew    *crew.Crew
}

type thread struct {
	team *team
	i    int
}

// Rank is this rank's number among all.
func (t *thread) Rank() int { return t.team.process.Rank()*t.team.n + t.i }

// Size is the number of ranks of the job.
func (t *thread) Size() int { return t.team.process.Size() * t.team.n }

// Secret, Addr and HostID are the process's, where its bootstrap has them.

// Secret is what only the job's ranks know, or nil.
func (t *thread) Secret() []byte {
	if p, ok := t.team.process.(interface{ Secret() []byte }); ok {
		return p.Secret()
	}
	return nil
}

// Addr is the address by which others reach this process, if known.
func (t *thread) Addr() netip.Addr {
	if p, ok := t.team.process.(interface{ Addr() netip.Addr }); ok {
		return p.Addr()
	}
	return netip.Addr{}
}

// HostID, if not "", decides which ranks share a host.
func (t *thread) HostID() string {
	if p, ok := t.team.process.(interface{ HostID() string }); ok {
		return p.HostID()
	}
	return ""
}

// AllGather returns every rank's mine, indexed by rank.
func (t *thread) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	all, err := t.team.crew.AllGather(ctx, t.i, mine)
	if errors.Is(err, crew.ErrValues) {
		return nil, fmt.Errorf("launch: %w; does every process have the same -t?", err)
	}
	return all, err
}
