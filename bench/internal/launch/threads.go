// Package launch makes ranks: several in one process, and processes on this
// machine.
package launch

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/goranks"
)

// Threads makes n ranks of this process, which is rank b of a job of processes:
// ranks b*n to b*n+n-1 of a job n times as large. The process's one bootstrap
// carries them all.
func Threads(b ccl.Bootstrap, n int) []ccl.Bootstrap {
	team := &team{goranks.Full{Bootstrap: b}, n, goranks.New(n, func(int) int { return n }, b.AllGather)}
	ranks := make([]ccl.Bootstrap, n)
	for i := range ranks {
		ranks[i] = &thread{team, i}
	}
	return ranks
}

// team is what the ranks of a process share.
type team struct {
	goranks.Full // the process's own
	n            int
	ranks        *goranks.Ranks
}

// thread is one of them. What is not its own is the process's.
type thread struct {
	*team
	i int
}

// Rank is this rank's number among all.
func (t *thread) Rank() int { return t.team.Rank()*t.n + t.i }

// Size is the number of ranks of the job.
func (t *thread) Size() int { return t.team.Size() * t.n }

// AllGather returns every rank's mine, indexed by rank.
func (t *thread) AllGather(ctx context.Context, mine []byte) ([][]byte, error) {
	all, err := t.ranks.AllGather(ctx, t.i, mine)
	if errors.Is(err, goranks.ErrValues) {
		return nil, fmt.Errorf("launch: %w; does every process have the same -t?", err)
	}
	return all, err
}
