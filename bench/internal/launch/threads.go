// Package launch makes ranks: several in one process, and processes on this
// machine.
package launch

import (
	"context"
	"encoding/binary"
	"errors"
	"net/netip"
	"sync"

	"github.com/goccl/goccl/ccl"
)

// Threads makes n ranks of this process, which is rank b of a job of processes:
// ranks b*n to b*n+n-1 of a job n times as large. The process's one bootstrap
// carries them all.
func Threads(b ccl.Bootstrap, n int) []ccl.Bootstrap {
	team := &team{process: b, n: n, round: newRound(n)}
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

	mu    sync.Mutex
	round *round
}

// round is one AllGather: the last to arrive calls the process's own.
type round struct {
	mine    [][]byte
	arrived int
	done    chan struct{} // closed once all and err are there
	all     [][]byte
	err     error
}

func newRound(n int) *round { return &round{mine: make([][]byte, n), done: make(chan struct{})} }

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
	m := t.team
	m.mu.Lock()
	r := m.round
	r.mine[t.i] = mine
	r.arrived++
	last := r.arrived == m.n
	if last {
		m.round = newRound(m.n)
	}
	m.mu.Unlock()

	if last {
		r.all, r.err = m.gather(ctx, r.mine)
		close(r.done)
	}
	select {
	case <-r.done:
		return r.all, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (m *team) gather(ctx context.Context, mine [][]byte) ([][]byte, error) {
	packed, err := m.process.AllGather(ctx, pack(mine))
	if err != nil {
		return nil, err
	}
	all := make([][]byte, 0, len(packed)*m.n)
	for _, p := range packed {
		parts, err := unpack(p, m.n)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	return all, nil
}

// pack joins parts into one, each after its length.
func pack(parts [][]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.AppendUvarint(b, uint64(len(p)))
		b = append(b, p...)
	}
	return b
}

var errPacked = errors.New("launch: a process sent what is not one value for each of its ranks; does every process have the same -t?")

// unpack takes n parts out of what pack made.
func unpack(b []byte, n int) ([][]byte, error) {
	parts := make([][]byte, n)
	for i := range parts {
		size, k := binary.Uvarint(b)
		if k <= 0 || size > uint64(len(b)-k) {
			return nil, errPacked
		}
		parts[i], b = b[k:k+int(size):k+int(size)], b[k+int(size):]
	}
	if len(b) > 0 {
		return nil, errPacked
	}
	return parts, nil
}
