// Package relay gives all ranks what rank 0 reads.
package relay

import (
	"context"
	"io"

	"github.com/goccl/goccl/ccl"
)

// Relay is a reader on all ranks of what rank 0 reads, a block at a time.
type Relay struct {
	ctx  context.Context
	c    *ccl.Comm
	r    io.Reader // on rank 0
	left int64
	buf  []byte
	rest []byte // of buf
	Lost error  // what rank 0 could not read; the others get zeros, which are no index
	err  error  // of the Comm
}

// New makes a Relay of size bytes, which rank 0 knows.
func New(ctx context.Context, c *ccl.Comm, r io.Reader, size int64, limit int) (*Relay, error) {
	n := []int64{size}
	if err := ccl.Broadcast(ctx, c, n, 0); err != nil {
		return nil, err
	}
	return &Relay{ctx: ctx, c: c, r: r, left: n[0], buf: make([]byte, min(n[0], int64(limit)))}, nil
}

func (l *Relay) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next brings a block.
func (l *Relay) next() error {
	switch {
	case l.err != nil:
		return l.err
	case l.left == 0:
		return io.EOF
	}
	l.rest = l.buf[:min(l.left, int64(len(l.buf)))]
	if l.c.Rank() == 0 && l.Lost == nil {
		_, l.Lost = io.ReadFull(l.r, l.rest)
	}
	if l.Lost != nil {
		clear(l.rest)
	}
	l.left -= int64(len(l.rest))
	l.err = ccl.Broadcast(l.ctx, l.c, l.rest, 0)
	return l.err
}

// Drain reads what is left, as the other ranks do.
func (l *Relay) Drain() error {
	for l.left > 0 && l.err == nil {
		_ = l.next() // which is in l.err
	}
	return l.err
}
