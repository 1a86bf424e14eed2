//go:build nccl && cgo && linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/cuda"
)

const (
	elements = 2 // of float32: 8 bytes
	group    = 8 // calls in a group
)

// The rows that others are compared with.
const (
	inC   = "C, a loop"
	alone = "cgo, the same call alone"
)

// row is what a stretch took, in nanoseconds a call, round by round.
type row struct {
	name string
	ns   []float64
}

func (r *row) least() float64 { return slices.Min(r.ns) }

func (r *row) median() float64 {
	s := slices.Sorted(slices.Values(r.ns))
	return s[len(s)/2]
}

// budget is one rank with a stream and memory.
type budget struct {
	ctx  context.Context
	c    *ccl.Comm
	s    *cuda.Stream
	q    ccl.Queue
	x, y *cuda.Mem[float32]
	bare *bare
	last ccl.Work

	bx, by, same, in ccl.Buf
	eight            func(g ccl.Queue) error
}

func newBudget(ctx context.Context, c *ccl.Comm) (*budget, error) {
	d, err := cuda.At(0)
	if err != nil {
		return nil, err
	}
	b := &budget{ctx: ctx, c: c}
	if b.s, err = d.NewStream(); err != nil {
		return nil, err
	}
	if b.x, err = cuda.Alloc[float32](d, elements); err != nil {
		return nil, err
	}
	if b.y, err = cuda.Alloc[float32](d, elements); err != nil {
		return nil, err
	}
	at, _ := b.x.Ptr()
	stream, _ := b.s.Handle()
	if b.bare, err = findBare(c.Native(), stream, at); err != nil {
		return nil, err
	}
	b.q, b.bx, b.by, b.same, b.in = c.On(b.s), ccl.BufOfMemory(b.x), ccl.BufOfMemory(b.y), ccl.BufOfMemory(b.x),
		ccl.InPlace()
	b.eight = func(g ccl.Queue) error {
		for range group {
			g.AllReduce(b.bx, b.in, ccl.Sum)
		}
		return nil
	}
	return b, nil
}

func (b *budget) close() error { return errors.Join(b.x.Free(), b.y.Free(), b.s.Close()) }

// wait is for the last call.
func (b *budget) wait() error { return b.last.Wait(b.ctx) }

func (b *budget) inPlace(n int) {
	for range n {
		b.last = b.q.AllReduce(b.bx, b.in, ccl.Sum)
	}
}

// path is one way to make n calls.
type path struct {
	name string
	run  func(n int)
}

func (b *budget) paths(refused *int) []path {
	return []path{
		{inC, func(n int) { *refused |= b.bare.loop(n) }},
		{"cgo, nothing", crossing},
		{alone, func(n int) { *refused |= b.bare.crossings(n) }},
		{"time.Now", func(n int) {
			for range n {
				if time.Now().IsZero() { // so that it is called
					return
				}
			}
		}},
		{"Queue.AllReduce, in place", b.inPlace},
		{"Queue.AllReduce, two Bufs of one Mem", func(n int) {
			for range n {
				b.last = b.q.AllReduce(b.bx, b.same, ccl.Sum)
			}
		}},
		{"Queue.AllReduce, two Mems in turn", func(n int) {
			for range n / 2 {
				b.q.AllReduce(b.bx, b.in, ccl.Sum)
				b.last = b.q.AllReduce(b.by, b.in, ccl.Sum)
			}
		}},
		{"Queue.Broadcast", func(n int) {
			for range n {
				b.last = b.q.Broadcast(b.bx, 0)
			}
		}},
		{fmt.Sprintf("Queue.Group of %d, each call", group), func(n int) {
			for range n / group {
				b.last = b.q.Group(b.eight)
			}
		}},
	}
}

// measure runs stretches of n calls, each path in its turn.
func (b *budget) measure(n, rounds int) ([]row, error) {
	refused := 0
	paths := b.paths(&refused)
	rows := make([]row, len(paths))
	for range rounds {
		for i, p := range paths {
			time.Sleep(2 * time.Millisecond) // as after a wait
			start := time.Now()
			p.run(n)
			took := time.Since(start)
			rows[i].name = p.name
			rows[i].ns = append(rows[i].ns, float64(took.Nanoseconds())/float64(n))
			if err := b.wait(); err != nil {
				return nil, err
			}
			if refused != 0 {
				return nil, fmt.Errorf("ncclAllReduce in C: result %d", refused)
			}
		}
	}
	return rows, nil
}
