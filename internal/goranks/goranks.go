// Package goranks lets several ranks of one process share its bootstrap: the last rank of the process to arrive at an
// all-gather makes one all-gather of the processes for all of them.
package goranks

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
)

// Ranks is the ranks of one process.
type Ranks struct {
	ranksOf func(process int) int
	gather  func(ctx context.Context, mine []byte) ([][]byte, error)

	mu    sync.Mutex
	round *round
}

// round is one all-gather of all ranks.
type round struct {
	mine    [][]byte
	arrived int
	done    chan struct{} // closed once all and err are there
	all     [][]byte
	err     error
}

func newRound(n int) *round { return &round{mine: make([][]byte, n), done: make(chan struct{})} }

// New makes the ranks of a process with n ranks. ranksOf is the number of ranks of each process, in
// whose order ranks are numbered; gather is the all-gather of the processes.
func New(n int, ranksOf func(process int) int, gather func(ctx context.Context, mine []byte) ([][]byte, error)) *Ranks {
	return &Ranks{ranksOf: ranksOf, gather: gather, round: newRound(n)}
}

// AllGather is the call of rank i of this process, counted from 0. It returns the values of all ranks of the job.
func (c *Ranks) AllGather(ctx context.Context, i int, mine []byte) ([][]byte, error) {
	c.mu.Lock()
	r := c.round
	r.mine[i] = mine
	r.arrived++
	last := r.arrived == len(r.mine)
	if last {
		c.round = newRound(len(r.mine))
	}
	c.mu.Unlock()
	if last {
		r.all, r.err = c.exchange(ctx, r.mine)
		close(r.done)
	}
	select {
	case <-r.done:
		return r.all, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// exchange swaps the values of this process's ranks for those of all ranks.
func (c *Ranks) exchange(ctx context.Context, mine [][]byte) ([][]byte, error) {
	processes, err := c.gather(ctx, pack(mine))
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for p, packed := range processes {
		values, err := unpack(packed, c.ranksOf(p))
		if err != nil {
			return nil, fmt.Errorf("process %d: %w", p, err)
		}
		all = append(all, values...)
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

// ErrValues is in the error of a process that has another number of ranks than this one believes.
var ErrValues = errors.New("it did not send one value for each of its ranks")

// unpack takes n parts out of what pack made.
func unpack(b []byte, n int) ([][]byte, error) {
	parts := make([][]byte, n)
	for i := range parts {
		size, k := binary.Uvarint(b)
		if k <= 0 || size > uint64(len(b)-k) {
			return nil, ErrValues
		}
		parts[i], b = b[k:k+int(size):k+int(size)], b[k+int(size):]
	}
	if len(b) > 0 {
		return nil, ErrValues
	}
	return parts, nil
}

// Bootstrap is what a bootstrap must have.
type Bootstrap interface {
	Rank() int
	Size() int
	AllGather(ctx context.Context, mine []byte) ([][]byte, error)
}

// Full is a bootstrap with the methods that some have. They return nothing where its own has none.
type Full struct{ Bootstrap }

// Secret returns what only the job's ranks know, or nil.
func (f Full) Secret() []byte {
	if b, ok := f.Bootstrap.(interface{ Secret() []byte }); ok {
		return b.Secret()
	}
	return nil
}

// Addr returns the address by which others reach this process, if it is known.
func (f Full) Addr() netip.Addr {
	if b, ok := f.Bootstrap.(interface{ Addr() netip.Addr }); ok {
		return b.Addr()
	}
	return netip.Addr{}
}

// HostID returns a name that the ranks of a host share, or "".
func (f Full) HostID() string {
	if b, ok := f.Bootstrap.(interface{ HostID() string }); ok {
		return b.HostID()
	}
	return ""
}
